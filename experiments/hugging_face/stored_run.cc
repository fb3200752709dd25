#include "experiments/hugging_face/stored_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/merged_weights.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/run/planning.h"
#include "experiments/run/run_checkpoint.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/file.h"
#include "io/run_files.h"
#include "models/hugging_face.h"
#include "models/optimizer.h"
#include "models/task.h"
#include "models/units/embedding.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// The directory at `path`, or the checkpoint if `path` is a file in one, such as the manifest;
/// nullopt if `path` does not exist.
std::optional<fs::path> directory_named(const std::string& path) {
  fs::path folder = fs::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (is_folder(folder)) return folder;
  const fs::path above = folder.has_parent_path() ? folder.parent_path() : ".";
  if (exists_at(folder) && exists_at(above / kManifestName)) return above;
  return std::nullopt;
}

/// Whether `folder` is a commit, even one that has lost its manifest, which is reported separately.
bool is_commit(const fs::path& folder) {
  return exists_at(folder / kManifestName) || folder.filename().string().starts_with("step-");
}

/// The directory of the run that contains `named`.
std::optional<fs::path> directory_of_run(const fs::path& named) {
  fs::path folder = fs::absolute(named).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  for (int up = 0; up < 3 && folder.has_relative_path(); ++up, folder = folder.parent_path())
    if (exists_at(folder / kConfigFile)) return folder;
  return std::nullopt;
}

const Task& task_of_run(const RunConfig& config) {
  return task_of(config.model.family, config.model.task);
}

/// The names of our position tensors, whose rows may be the first rows of a longer stored tensor.
std::set<std::string> tensors_of_positions(const RunConfig& config) {
  std::set<std::string> all;
  for (const auto& [type, table] : published_models())
    if (table.family == config.model.family)
      for (const TensorMapping& rule : table.tensors(model_config_of(config)))
        if (rule.first_rows) all.insert(rule.ours);
  return all;
}

}  // namespace

bool is_of_classes(const std::string& tensor) {
  return tensor.find("/classes.") != std::string::npos ||
         tensor.find("/tags.") != std::string::npos;
}

bool is_new(const RunConfig& config, const std::string& tensor) {
  return config.model.head == "new" && is_of_classes(tensor);
}

void adopt_value(const std::string& key, const RunConfig& theirs, const std::string& source,
                 bool at_most, RunConfig& config) {
  const Key& known = *find_key(key);
  const std::string wanted = value_text(known, theirs);
  if (!config.origins.contains(key)) return set_key(key, wanted, source, config);
  const std::string set = value_text(known, config);
  if (set == wanted) return;
  const int* const mine = value_if<int>(known, config);
  const bool less = at_most && mine != nullptr && *mine <= *value_if<int>(known, theirs);
  if (!less)
    throw_input(fmt::format("{} = {}, but the model in model.from has {}", key, set, wanted),
                config.where(key), fmt::format("{} = {}", key, wanted));
}

std::optional<StoredRun> find_stored_run(const std::string& path) {
  const std::optional<fs::path> named = directory_named(path);
  const std::optional<fs::path> directory = named ? directory_of_run(*named) : std::nullopt;
  if (!directory) return std::nullopt;
  StoredRun run;
  run.directory = directory->string();
  read_run_directory(run.directory, run.config);
  validate(run.config);
  const bool whole = exists_at(*named / kConfigFile);
  run.checkpoints = whole ? checkpoint_directory(run.config) : named->string();
  run.choice.chosen = whole ? Chosen::best : Chosen::newest;
  return run;
}

void refuse_stored(const std::string& path, const std::string& instead) {
  const std::optional<fs::path> named = directory_named(path);
  if (named && (is_commit(*named) || newest_commit(named->string())))
    throw_input("no config.toml here or in a parent directory", path,
                "a checkpoint inside the directory of its run");
  throw_input(exists_at(path) ? "neither a run nor a checkpoint" : "no such file or directory",
              path,
              instead + "a run directory, a checkpoint (step-...) or a directory of checkpoints");
}

StoredRun require_stored_run(const std::string& path) {
  std::optional<StoredRun> run = find_stored_run(path);
  if (!run) refuse_stored(path);
  return std::move(*run);
}

CheckpointReader open_stored(const StoredRun& run) {
  std::optional<CheckpointReader> reader;
  if (is_commit(run.checkpoints))
    reader.emplace(run.checkpoints);
  else if (auto commit = run.choice.chosen == Chosen::best ? open_best(run.checkpoints)
                                                           : open_newest(run.checkpoints))
    reader.emplace(std::move(*commit));
  if (!reader) refuse_without_commit(run.checkpoints);
  if (run.choice.average) reader->use_as_weights(std::string(kAverage));
  return std::move(*reader);
}

std::string untied_table(const CheckpointReader& checkpoint, const RunConfig& config) {
  const ModelSpec spec = model_of(config)->spec();
  const std::string own = fmt::format("{}/{}", spec.units.front().name, kTokenTable);
  const bool here = parameter_shapes(config).contains(own);
  return !here && std::ranges::binary_search(checkpoint.tensors(), own) ? own : "";
}

std::string stored_commit(const std::string& path) {
  const std::optional<fs::path> named = directory_named(path);
  if (named && is_commit(*named)) return named->string();
  if (named && !exists_at(*named / kConfigFile))  // works without a run
    if (const auto newest = newest_commit(named->string())) return newest->path;
  const StoredRun run = require_stored_run(path);
  if (const auto newest = newest_commit(run.checkpoints)) return newest->path;
  refuse_without_commit(run.checkpoints);
}

void adopt_stored(const StoredRun& run, RunConfig& config) {
  const std::string source = (fs::path(run.directory) / kConfigFile).string();
  const auto adopt_unless_set = [&](const std::string& key) {
    if (!config.origins.contains(key)) adopt_value(key, run.config, source, false, config);
  };
  for (const Key& key : config_keys()) {
    const std::string name(key.name);
    if (!name.starts_with("model.") || !applies(key, run.config)) continue;
    if (name == "model.task" || name == "model.dropout" || name == "model.attention_dropout")
      adopt_unless_set(name);
    else if (name != "model.from" && name != "model.head" && name != "model.seed" &&
             name != "model.classes" && name != "model.label_smoothing" && name != "model.init_std")
      adopt_value(name, run.config, source, name == "model.context", config);
  }
  if (config.model.head == "kept" && &task_of_run(config) == &task_of_run(run.config) &&
      task_of_run(config).classes) {
    adopt_value("model.classes", run.config, source, false, config);
    adopt_unless_set("data.classes");
  }
  if (run.config.data.tokenizer != RunConfig{}.data.tokenizer) adopt_unless_set("data.tokenizer");
}

StoredWeights::StoredWeights(const std::string& commit, const RunConfig& config)
    : reader_(commit), untied_table_(untied_table(reader_, config)) {
  const ModelSpec spec = model_of(config)->spec();
  const std::string head = spec.units.back().name + "/";
  const std::set<std::string> positions = tensors_of_positions(config);
  const auto shapes = parameter_shapes(config);
  const std::vector<std::string> stored = reader_.tensors();
  const auto require_of_head = [&](const std::string& tensor, const char* problem) {
    if (!tensor.starts_with(head))
      throw_input(fmt::format("the tensor {} {}", tensor, problem), commit,
                  "the [model] of the run that saved it");
  };
  for (const auto& [tensor, shape] : shapes) {
    if (is_new(config, tensor)) {
      missing_.push_back(tensor);
      continue;
    }
    if (std::ranges::binary_search(stored, tensor)) {
      require_shape(tensor, shape, positions.contains(tensor));
      continue;
    }
    require_of_head(tensor, "is missing");
    missing_.push_back(tensor);
  }
  const bool tied = std::ranges::any_of(make_buckets(spec), [](const Bucket& bucket) {
    return bucket.name == kTokenTable && bucket.uses.size() > 1;
  });
  for (const std::string& tensor : stored) {
    if (shapes.contains(tensor) || is_adapter(tensor)) continue;
    if (tensor == untied_table_) {
      if (!tied) continue;  // the head's table is not used
      throw_input(fmt::format("this run froze its embedding and trained its head: the token tables "
                              "'{}' and '{}' differ, but this model has only one",
                              tensor, kTokenTable),
                  commit, "an earlier checkpoint, or a run with freeze.tied = \"freezes\"");
    }
    require_of_head(tensor, "is not part of this model");
    left_out_.push_back(tensor);
  }
}

void StoredWeights::require_shape(const std::string& tensor, const std::vector<std::int64_t>& shape,
                                  bool first_rows) const {
  const std::vector<std::int64_t>& stored = reader_.shape(tensor);
  const bool longer = first_rows && stored.size() == 2 && shape.size() == 2 &&
                      stored[0] >= shape[0] && stored[1] == shape[1];
  if (stored != shape && !longer)
    throw_input(fmt::format("the tensor {} has the shape [{}], but this model needs [{}]", tensor,
                            fmt::join(stored, ", "), fmt::join(shape, ", ")),
                reader_.directory(), "the [model] of the run that saved it");
}

bool StoredWeights::read(const std::string& tensor, std::span<float> out) {
  if (is_adapter(tensor) || std::ranges::find(missing_, tensor) != missing_.end()) return false;
  const bool untied = tensor == kTokenTable && !untied_table_.empty();
  read_merged(reader_, untied ? untied_table_ : tensor, out);
  return true;
}

}  // namespace concertina
