#include "experiments/run/run_checkpoint.h"

#include <fmt/format.h>

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

using Json = nlohmann::json;

Json error_json(const Error& error) {
  return {{"code", static_cast<int>(error.code())},
          {"what", error.message()},
          {"where", error.where()},
          {"fix", error.fix()}};
}

/// Runs `work` on every rank of `world` and returns what each made; if any threw, all ranks throw
/// the first rank's error. `cleanup` runs before that.
std::vector<Json> together(Communicator& world, const std::function<Json()>& work,
                           const std::function<void()>& cleanup = {}) {
  Json mine;
  try {
    mine = {{"value", work()}};
  } catch (const Error& error) {
    mine = {{"error", error_json(error)}};
  }
  std::vector<Json> all = gather_json(world, mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].contains("error")) {
      all[rank] = all[rank]["value"];
      continue;
    }
    if (cleanup) cleanup();
    const Json& error = all[rank]["error"];
    std::string where = error["where"];
    if (world.size() > 1) where += fmt::format(" (rank {})", rank);
    throw Error(static_cast<Exit>(error["code"].get<int>()), error["what"], where, error["fix"]);
  }
  return all;
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

constexpr const char* kCompute = "numerics.compute";

/// A config key that is younger than the checkpoint had its default.
Json value_then(const Json& stored, const std::string& key) {
  if (stored.contains(key)) return stored[key];
  if (key == "model.seed" || key == "data.seed") return stored.value("run.seed", Json("absent"));
  const Key* known = find_key(key);
  return known != nullptr ? Json(value_text(*known, RunConfig{})) : Json("absent");
}

void check_identity(const Json& stored, const Json& now, const std::string& path) {
  for (const auto& [key, value] : now.items()) {
    const Json then = value_then(stored, key);
    if (may_change(key) || then == value) continue;
    const auto text = [](const Json& one) {
      return one.is_string() ? one.get<std::string>() : one.dump();
    };
    throw_input(fmt::format("the checkpoint is of another run: {} was {}, now it is {}", key,
                            text(then), text(value)),
                path, fmt::format("the same {} as before, or another run.name for a new run", key));
  }
}

/// Progress for the engine's watchdog.
Beat beat_of(const RankEngine& engine) {
  Watchdog* const watchdog = engine.watchdog();
  return [watchdog] {
    if (watchdog != nullptr) watchdog->beat();
  };
}

/// What rank 0 finds at `path`: a commit, or the newest one below it; null if there is none.
Json find_commit(const std::string& path) {
  if (std::filesystem::exists(std::filesystem::path(path) / kManifestName)) return path;
  const std::optional<OpenCommit> newest = open_newest(path);
  return newest ? Json(newest->path) : Json();
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

}  // namespace

// What is kept is fp32 in any precision.
bool may_change(std::string_view key) {
  return key == kCompute || key == "numerics.isa" || key == "oneDNN" || key == "lr.steps";
}

Json numerics_identity(const RunConfig& config, const RunPlan& run,
                       const std::string& data_fingerprint) {
  Json identity;
  RunConfig copy = config;
  for (const Key& key : config_keys()) {
    const std::string_view section = key.name.substr(0, key.name.find('.'));
    const bool numeric = section == "model" || section == "batch" || section == "optimizer" ||
                         section == "freeze" || section == "lr" || key.name == "run.seed" ||
                         key.name == "data.tokenizer" || key.name == "data.validation" ||
                         key.name == kCompute;
    if (numeric) identity[std::string(key.name)] = value_text(key, copy);
  }
  identity["model.seed"] = std::to_string(model_seed(config));
  identity["data.seed"] = std::to_string(data_seed(config));
  identity["lr.steps"] = std::to_string(lr_steps(config));
  identity["numerics.leaves"] = std::to_string(run.leaves);
  identity["data.text"] = data_fingerprint;
  return identity;
}

void save_checkpoint(RankEngine& engine, const std::string& directory, std::int64_t step, int keep,
                     const Json& identity) {
  const Watchdog::Patience patience(engine.watchdog(), "saving a checkpoint");
  Communicator& world = engine.world();
  const bool leads = world.rank() == 0;
  const std::string partial =
      together(world, [&] { return leads ? Json(begin_checkpoint(directory, step)) : Json(); })[0];
  const auto cleanup = [&] {
    if (leads) abandon_checkpoint(partial);
  };
  const std::vector<Json> records = together(
      world,
      [&] {
        std::list<std::vector<std::byte>> copies;
        const std::vector<TensorPiece> pieces = own_pieces(engine, world.rank(), copies);
        return to_json(
            write_shard(partial, static_cast<std::size_t>(world.rank()), pieces, beat_of(engine)));
      },
      cleanup);
  together(
      world,
      [&] {
        if (!leads) return Json();
        std::vector<ShardRecord> shards;
        for (const Json& record : records) shards.push_back(parse_shard_record(record, partial));
        const std::string path = write_manifest(partial, std::move(shards), identity);
        prune(directory, static_cast<std::size_t>(keep));
        return Json(path);
      },
      cleanup);
}

std::optional<std::int64_t> load_checkpoint(RankEngine& engine, const std::string& path,
                                            const Json& identity, Json* kept) {
  const Watchdog::Patience patience(engine.watchdog(), "loading a checkpoint");
  Communicator& world = engine.world();
  const Json commit =
      together(world, [&] { return world.rank() == 0 ? find_commit(path) : Json(); })[0];
  if (commit.is_null()) return std::nullopt;
  std::int64_t step = 0;
  together(world, [&] {
    CheckpointReader reader(commit.get<std::string>());
    reader.on_beat(beat_of(engine));
    step = reader.manifest().step;
    const Json& stored = reader.manifest().metadata;
    if (kept != nullptr) *kept = stored;
    if (!identity.empty()) check_identity(stored, identity, reader.directory());
    read_state(engine, world.rank(), reader);
    return Json();
  });
  engine.refresh();
  return step;
}

std::int64_t require_checkpoint(RankEngine& engine, const std::string& path) {
  const std::optional<std::int64_t> step = load_checkpoint(engine, path, {});
  if (!step)
    throw_input("there is no checkpoint", path,
                "the directory of a run that `concertina train` has trained");
  return *step;
}

}  // namespace concertina
