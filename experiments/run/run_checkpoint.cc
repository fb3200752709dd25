#include "experiments/run/run_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <functional>
#include <list>

#include "core/error.h"
#include "core/log.h"
#include "experiments/config/config_keys.h"
#include "experiments/run/gather.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/checkpoint_shard.h"

namespace concertina {
namespace {

/// `value` of rank 0 on every rank; if making it threw there, all ranks throw.
nlohmann::json from_first(Communicator& world, const std::function<nlohmann::json()>& make) {
  nlohmann::json value;
  together(world, [&] {
    if (world.rank() == 0) value = make();
  });
  return gather_json(world, value)[0];
}

/// A path that begins with `directory`, or nothing, of rank 0 on every rank. Only what follows
/// travels: a directory's own name need not be UTF-8, as JSON is.
std::optional<std::string> path_from_first(
    Communicator& world, const std::string& directory,
    const std::function<std::optional<std::string>()>& make) {
  const nlohmann::json below = from_first(world, [&] {
    const std::optional<std::string> path = make();
    return path ? nlohmann::json(path->substr(directory.size())) : nlohmann::json();
  });
  if (below.is_null()) return std::nullopt;
  return directory + below.get<std::string>();
}

/// Calls f(tensor, part of the rank's bucket, run) for every tensor run that the rank owns.
void each_run(const RankEngine& engine, int rank,
              const std::function<void(std::size_t, const Part&, const TensorRun&)>& f) {
  const RunPlan& run = engine.run();
  for (std::size_t b = 0; b < run.buckets.size(); ++b) {
    const int me = run.owners[b].index_of(rank);
    if (me < 0) continue;
    const Part& part = run.owners[b].parts[static_cast<std::size_t>(me)];
    for (const TensorRun& one : tensor_runs(run.buckets[b], part)) f(b, part, one);
  }
}

/// Names of what the optimizer keeps of a bucket: nothing of a frozen one.
std::vector<std::string> state_names(const RankEngine& engine, std::size_t bucket) {
  if (engine.run().buckets[bucket].frozen) return {};
  const auto& names = engine.update().state_names();
  return {names.begin(), names.end()};
}

/// `copies`: of what host code cannot read, as long as the pieces are in use.
std::vector<TensorPiece> own_pieces(const RankEngine& engine, int rank,
                                    std::list<std::vector<std::byte>>& copies) {
  std::vector<TensorPiece> pieces;
  const auto readable = [&](View tensor) {
    return host_view(engine.tensor_memory(), tensor, copies.emplace_back()).f32();
  };
  each_run(engine, rank, [&](std::size_t b, const Part& part, const TensorRun& run) {
    const BucketTensor& tensor =
        engine.run().buckets[b].tensors[static_cast<std::size_t>(run.tensor)];
    const std::size_t count = run.end - run.begin;
    TensorPiece piece{tensor.name, tensor.shape, run.begin - tensor.offset, count, {}};
    piece.parts.push_back({"weight", readable(engine.weights()[b].slice(run.begin, count))});
    const std::vector<std::string> names = state_names(engine, b);
    for (std::size_t s = 0; s < names.size(); ++s)
      piece.parts.push_back({names[s], readable(engine.update()
                                                    .state(static_cast<int>(b), s)
                                                    .slice(run.begin - part.begin, count))});
    pieces.push_back(std::move(piece));
  });
  return pieces;
}

/// No checkpoint is made of a state that no step can start from: a NaN, an infinity, or a weight
/// whose square overflows, and with it any norm of it.
void require_sound(const TensorPiece& piece, std::int64_t step) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kSquareOverflows = 0x5f800000;  // 2^64
  for (const StatePart& part : piece.parts) {
    const std::uint32_t limit = part.name == "weight" ? kSquareOverflows : kInfinity;
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < piece.count; ++i)
      largest = std::max(largest, std::bit_cast<std::uint32_t>(part.data[i]) & 0x7fffffff);
    if (largest < limit) continue;
    throw_failure(
        fmt::format("training has diverged: after step {} '{}' of {} {}; no checkpoint is made",
                    step, part.name, piece.name,
                    largest >= kInfinity ? "is not finite" : "has values above 2^64"),
        fmt::format("step {}", step), kDivergedAdvice);
  }
}

/// What is kept is fp32 in any precision and on any device.
constexpr std::string_view kMayChange[] = {
    "numerics.compute", "numerics.attention", "run.device", "numerics.isa", "oneDNN", "lr.steps"};

/// A config key that is younger than the checkpoint had its default.
nlohmann::json value_then(const nlohmann::json& stored, const std::string& key) {
  if (stored.contains(key)) return stored[key];
  if (key == "model.seed" || key == "data.seed")
    return stored.value("run.seed", nlohmann::json("absent"));
  const Key* known = find_key(key);
  return known != nullptr ? nlohmann::json(value_text(*known, RunConfig{}))
                          : nlohmann::json("absent");
}

/// Throws unless the checkpoint is of a run with this identity, but for keys that may change.
void check_identity(const nlohmann::json& stored, const nlohmann::json& now,
                    const std::string& path) {
  const auto text = [](const nlohmann::json& one) {
    return one.is_string() ? one.get<std::string>() : one.dump();
  };
  for (const auto& [key, value] : now.items()) {
    // A sample of the text is compared in any case.
    if (key == kWholeText && !stored.contains(key)) continue;
    const nlohmann::json then = value_then(stored, key);
    if (may_change(key) || then == value) continue;
    throw_input(fmt::format("the checkpoint is of another run: {} was {}, now it is {}", key,
                            text(then), text(value)),
                path, fmt::format("the same {} as before, or another run.name for a new run", key));
  }
  for (const auto& [key, value] : stored.items())
    if (!now.contains(key) && !may_change(key))
      throw_input(fmt::format("the checkpoint depends on {} = {}, which this version does not know",
                              key, text(value)),
                  path, "the version of concertina that wrote it, or a newer one");
}

/// Progress for the engine's watchdog.
Beat beat_of(const RankEngine& engine) {
  Watchdog* const watchdog = engine.watchdog();
  return [watchdog] {
    if (watchdog != nullptr) watchdog->beat();
  };
}

/// A commit at `path`, or the newest one below it; nothing if there is none.
std::optional<std::string> find_commit(const std::string& path) {
  if (std::filesystem::exists(std::filesystem::path(path) / kManifestName)) return path;
  const std::optional<OpenCommit> newest = open_newest(path);
  if (!newest) return std::nullopt;
  return newest->path;
}

/// All weights that this rank holds, and the states of its own parts.
void read_state(RankEngine& engine, int rank, CheckpointReader& reader) {
  const RunPlan& run = engine.run();
  const auto read = [&](const std::string& name, const std::string& part, std::size_t from,
                        View tensor) {
    HostMirror mirror(engine.tensor_memory(), tensor);
    reader.read(name, part, from, {mirror.host().f32(), tensor.count});
    mirror.upload();
  };
  for (std::size_t b = 0; b < run.buckets.size(); ++b) {
    if (engine.weights()[b].empty()) continue;
    for (const BucketTensor& tensor : run.buckets[b].tensors) {
      if (reader.shape(tensor.name) != tensor.shape)
        throw_input(
            fmt::format("tensor {} has shape [{}], this model's has [{}]", tensor.name,
                        fmt::join(reader.shape(tensor.name), ", "), fmt::join(tensor.shape, ", ")),
            reader.directory(), "the config of the run that saved it");
      const View view = engine.weights()[b].slice(tensor.offset, tensor.count);
      read(tensor.name, "weight", 0, view);
    }
  }
  each_run(engine, rank, [&](std::size_t b, const Part& part, const TensorRun& one) {
    const BucketTensor& tensor = run.buckets[b].tensors[static_cast<std::size_t>(one.tensor)];
    const std::vector<std::string> names = state_names(engine, b);
    for (std::size_t s = 0; s < names.size(); ++s) {
      const View view = engine.update()
                            .state(static_cast<int>(b), s)
                            .slice(one.begin - part.begin, one.end - one.begin);
      read(tensor.name, names[s], one.begin - tensor.offset, view);
    }
  });
}

/// Nothing if there is no commit at `path`; `commit` is the one that is read.
std::optional<std::int64_t> try_load(RankEngine& engine, const std::string& path,
                                     const nlohmann::json& identity,
                                     std::optional<std::string>& commit, nlohmann::json* kept) {
  Communicator& world = engine.world();
  commit = path_from_first(world, path, [&] { return find_commit(path); });
  if (!commit) return std::nullopt;
  std::int64_t step = 0;
  together(world, [&] {
    CheckpointReader reader(*commit);
    reader.on_beat(beat_of(engine));
    step = reader.manifest().step;
    const nlohmann::json& stored = reader.manifest().metadata;
    if (kept != nullptr) *kept = stored;
    if (!identity.empty()) check_identity(stored, identity, reader.directory());
    read_state(engine, world.rank(), reader);
  });
  engine.refresh();
  return step;
}

}  // namespace

bool may_change(std::string_view key) {
  return std::find(std::begin(kMayChange), std::end(kMayChange), key) != std::end(kMayChange);
}

nlohmann::json numerics_identity(const RunConfig& config, const RunPlan& run,
                                 const std::string& data_fingerprint) {
  nlohmann::json identity;
  RunConfig copy = config;
  for (const Key& key : config_keys()) {
    const std::string_view section = key.name.substr(0, key.name.find('.'));
    const bool numeric = section == "model" || section == "batch" || section == "optimizer" ||
                         section == "freeze" || section == "lr" || key.name == "run.seed" ||
                         key.name == "data.tokenizer" || key.name == "data.validation" ||
                         key.name == "numerics.compute" || key.name == "numerics.attention" ||
                         key.name == "run.device";
    if (numeric) identity[std::string(key.name)] = value_text(key, copy);
  }
  identity["model.seed"] = std::to_string(model_seed(config));
  identity["data.seed"] = std::to_string(data_seed(config));
  identity["lr.steps"] = std::to_string(lr_steps(config));
  identity["numerics.leaves"] = std::to_string(run.leaves);
  identity["data.text"] = data_fingerprint;
  return identity;
}

void save_checkpoint(RankEngine& engine, const std::string& directory, std::int64_t step,
                     const nlohmann::json& identity) {
  const Watchdog::Patience patience(engine.watchdog(), "saving a checkpoint");
  Communicator& world = engine.world();
  const bool leads = world.rank() == 0;
  std::list<std::vector<std::byte>> copies;
  std::vector<TensorPiece> pieces;
  together(world, [&] {
    pieces = own_pieces(engine, world.rank(), copies);
    for (const TensorPiece& piece : pieces) require_sound(piece, step);
  });
  const std::string partial =
      *path_from_first(world, directory, [&] { return begin_checkpoint(directory, step); });
  const auto cleanup = [&] {
    if (leads) abandon_checkpoint(partial);
  };
  nlohmann::json record;
  together(
      world,
      [&] {
        record = to_json(
            write_shard(partial, static_cast<std::size_t>(world.rank()), pieces, beat_of(engine)));
      },
      cleanup);
  const std::vector<nlohmann::json> records = gather_json_on_first(world, record);
  together(
      world,
      [&] {
        if (!leads) return;
        std::vector<ShardRecord> shards;
        for (const nlohmann::json& one : records)
          shards.push_back(parse_shard_record(one, partial));
        write_manifest(partial, std::move(shards), identity);
      },
      cleanup);
}

void prune_checkpoints(const std::string& directory, int keep) {
  try {
    prune(directory, static_cast<std::size_t>(keep));
  } catch (const Error& error) {
    log::warn("an old checkpoint could not be removed: {} ({})", error.message(), error.where());
  }
}

std::optional<std::int64_t> load_checkpoint(RankEngine& engine, const std::string& path,
                                            const nlohmann::json& identity, nlohmann::json* kept) {
  const Watchdog::Patience patience(engine.watchdog(), "loading a checkpoint");
  // A run that trains removes old commits, also while another process reads them.
  constexpr int kAttempts = 20;
  for (int attempt = 1;; ++attempt) {
    std::optional<std::string> commit;
    try {
      return try_load(engine, path, identity, commit, kept);
    } catch (const Error&) {
      const bool gone = from_first(engine.world(), [&] {
        return nlohmann::json(commit && *commit != path && !std::filesystem::exists(*commit));
      });
      if (!gone || attempt == kAttempts) throw;
    }
    if (engine.world().rank() == 0)
      log::info("{} was removed while it was read: the newest one is taken", *commit);
  }
}

std::int64_t require_checkpoint(RankEngine& engine, const std::string& path, nlohmann::json* kept) {
  const std::optional<std::int64_t> step = load_checkpoint(engine, path, {}, kept);
  if (!step)
    throw_input("there is no checkpoint", path,
                "the directory of a run that `concertina train` has trained");
  return *step;
}

}  // namespace concertina
