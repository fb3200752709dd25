#include "experiments/run/run_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/gather.h"
#include "experiments/run/best_commit.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/shared_snapshot.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/checkpoint/checkpoint_reader.h"
#include "models/optimizer.h"

namespace concertina {
namespace {

/// The commit at `path`, or the `chosen` one below it, agreed on by all ranks; nullopt if there is
/// none. Rank 0 opens it and stores what it has read in `own`. Only the path relative to `path` is
/// sent, because a directory's name need not be UTF-8, unlike JSON.
std::optional<std::string> find_commit(Communicator& world, const std::string& path, Chosen chosen,
                                       std::optional<OpenCommit>& own) {
  const nlohmann::json below = from_first(world, [&]() -> nlohmann::json {
    if (std::filesystem::exists(std::filesystem::path(path) / kManifestName))
      own = OpenCommit{path, open_manifest(path)};
    else
      own = chosen == Chosen::best ? open_best(path) : open_newest(path);
    if (!own) return nullptr;
    return own->path.substr(path.size());
  });
  if (below.is_null()) return std::nullopt;
  return path + below.get<std::string>();
}

/// Reads a part of a tensor, starting at element `from`, into `tensor`.
using ReadPart = std::function<void(const std::string& name, const std::string& part,
                                    std::size_t from, View tensor)>;

/// Calls `read` for all weights on this rank and the optimizer states of the parts that it owns.
void each_wanted(State& state, const CheckpointReader& reader, const ReadPart& read) {
  const std::vector<Bucket>& buckets = state.assignment().buckets;
  const std::vector<std::string> stored = reader.tensors();
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (state.weights()[b].empty()) continue;
    for (const BucketTensor& tensor : buckets[b].tensors) {
      if (buckets[b].copy_of >= 0 && !std::ranges::binary_search(stored, tensor.name))
        throw_input(fmt::format("the checkpoint has one token table for the frozen units and the "
                                "head, but freeze.tied = \"trains\""),
                    reader.directory(), "freeze.tied = \"freezes\"");
      if (reader.shape(tensor.name) != tensor.shape)
        throw_input(
            fmt::format("tensor {} has shape [{}], but this model needs [{}]", tensor.name,
                        fmt::join(reader.shape(tensor.name), ", "), fmt::join(tensor.shape, ", ")),
            reader.directory(), "the config of the run that saved it");
      read(tensor.name, "weight", 0, state.weights()[b].slice(tensor.offset, tensor.count));
    }
  }
  state.each_owned([&](const OwnedRun& run) {
    for (std::size_t k = 0; k < run.kinds.size(); ++k)
      read(run.tensor->name, state.kinds()[k], run.begin, run.kinds[k]);
  });
}

/// Reads all tensors at once if they are in host memory, otherwise each through a host buffer.
void read_state(State& state, CheckpointReader& reader) {
  std::vector<CheckpointReader::Range> ranges;
  each_wanted(state, reader,
              [&](const std::string& name, const std::string& part, std::size_t from, View tensor) {
                if (state.memory().on_host()) {
                  ranges.push_back({name, part, from, {tensor.f32(), tensor.count}});
                  return;
                }
                HostMirror mirror(state.memory(), tensor);
                reader.read(name, part, from, {mirror.host().f32(), tensor.count});
                mirror.upload();
              });
  reader.read(ranges);
}

/// The shards that read_state() reads, ascending.
std::vector<std::size_t> wanted_shards(State& state, const CheckpointReader& reader) {
  std::set<std::size_t> wanted;
  each_wanted(state, reader,
              [&](const std::string& name, const std::string&, std::size_t from, View tensor) {
                wanted.merge(reader.shards_of(name, from, tensor.count));
              });
  return {wanted.begin(), wanted.end()};
}

/// Loads the commit returned by `open` on each rank and returns its step. `bring`, if set, is
/// called on every rank with the shards that this rank reads.
std::int64_t load_opened(Trainer& trainer, const std::function<OpenCommit()>& open,
                         const nlohmann::json& identity, nlohmann::json* kept, bool average,
                         const std::function<void(const std::vector<std::size_t>&)>& bring = {}) {
  Communicator& world = trainer.world();
  std::int64_t step = 0, updates = 0;
  std::vector<std::int64_t> missed;  // empty if an old version wrote the commit
  int frozen = trainer.layout().frozen_units;
  std::optional<CheckpointReader> reader;
  together(world, [&] {
    reader.emplace(open());
    reader->on_beat([&] { trainer.beat(); });
    if (average) reader->use_as_weights(std::string(kAverage));
    step = reader->manifest().step;
    const nlohmann::json& stored = reader->manifest().metadata;
    if (kept != nullptr) *kept = stored;
    if (!identity.empty()) check_identity(stored, identity, reader->directory());
    const nlohmann::json progress = stored.value(kProgress, nlohmann::json::object());
    frozen = progress.value("frozen_units", frozen);
    updates = progress.value("updates", step);
    missed = progress.value("missed", missed);
    if (updates < 0 || updates > step)
      throw_failure(fmt::format("{} updates in {} steps are impossible", updates, step),
                    reader->directory(), "an older checkpoint");
  });
  trainer.resume(step, updates);
  if (frozen != trainer.layout().frozen_units) {
    const Request request = trainer.asked_with_frozen(frozen);
    trainer.adopt(request, assign(trainer.job(), request));
  }
  if (bring) {
    std::vector<std::size_t> wanted;
    together(world, [&] { wanted = wanted_shards(trainer.state(), *reader); });
    bring(wanted);
  }
  together(world, [&] {
    missed.resize(trainer.assignment().buckets.size());
    trainer.state().missed() = std::move(missed);
    read_state(trainer.state(), *reader);
  });
  trainer.refresh();
  return step;
}

}  // namespace

std::optional<std::int64_t> load_snapshot(Trainer& trainer, const SnapshotRun& run,
                                          std::int64_t newer_than, std::int64_t most,
                                          const nlohmann::json& identity, nlohmann::json* stored) {
  const Watchdog::Patience patience(trainer.watchdog(), "loading a snapshot");
  Communicator& world = trainer.world();
  const std::optional<SharedSnapshot> found = find_snapshot(world, trainer.hosts(), run, most);
  if (!found || found->commit.manifest.step <= newer_than) return std::nullopt;
  try {
    return load_opened(
        trainer, [&] { return found->commit; }, identity, stored, /*average=*/false,
        [&](const std::vector<std::size_t>& wanted) {
          fetch_shards(world, trainer.hosts(), *found, wanted);
        });
  } catch (const Error& error) {
    if (world.rank() == 0)
      log::warn("cannot resume from the snapshot of step {} in memory: {} ({})",
                found->commit.manifest.step, error.message(), error.where());
    return std::nullopt;
  }
}

void prune_checkpoints(const std::string& directory, int keep, std::int64_t best) {
  try {
    prune(directory, static_cast<std::size_t>(keep), best);
  } catch (const Error& error) {
    log::warn("cannot remove an old checkpoint: {} ({})", error.message(), error.where());
  }
}

std::optional<std::int64_t> load_checkpoint(Trainer& trainer, const std::string& path,
                                            const nlohmann::json& identity, nlohmann::json* stored,
                                            const CheckpointChoice& choice) {
  const Watchdog::Patience patience(trainer.watchdog(), "loading a checkpoint");
  // A training run removes old commits even while another process reads them.
  constexpr int kAttempts = 20;
  for (int attempt = 1;; ++attempt) {
    std::optional<std::string> commit;
    try {
      std::optional<OpenCommit> own;
      commit = find_commit(trainer.world(), path, choice.chosen, own);
      if (!commit) return std::nullopt;
      const auto open = [&] {
        return own ? std::move(*own) : OpenCommit{*commit, open_manifest(*commit)};
      };
      return load_opened(trainer, open, identity, stored, choice.average);
    } catch (const Error&) {
      const bool removed = from_first(trainer.world(), [&] {
        return nlohmann::json(commit && *commit != path && !std::filesystem::exists(*commit));
      });
      if (!removed || attempt == kAttempts) throw;
    }
    if (trainer.world().rank() == 0)
      log::info("{} was removed while it was being read; using another checkpoint", *commit);
  }
}

void refuse_without_commit(const std::string& path) {
  throw_input("there is no checkpoint here", path,
              "the directory of a run trained by `concertina train`");
}

std::string agreed_commit(Communicator& world, const std::string& path, Chosen chosen) {
  std::optional<OpenCommit> own;
  const std::optional<std::string> commit = find_commit(world, path, chosen, own);
  if (!commit) refuse_without_commit(path);
  return *commit;
}

std::int64_t require_checkpoint(Trainer& trainer, const std::string& path,
                                const CheckpointChoice& choice, nlohmann::json* kept) {
  const std::optional<std::int64_t> step = load_checkpoint(trainer, path, {}, kept, choice);
  if (!step) refuse_without_commit(path);
  return *step;
}

}  // namespace concertina
