#include "experiments/hugging_face/model_from.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/peft.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/hugging_face/stored_run.h"
#include "io/file.h"
#include "io/tokenizers/tokenizer_files.h"
#include "models/task.h"

namespace concertina {
namespace {

/// Throws Error{bad_input} if model.head asks for new classes but the task has none.
void require_classes(const RunConfig& config) {
  if (config.model.head == "kept" || task_of(config.model.family, config.model.task).classes)
    return;
  throw_input("model.head = \"new\", but this task has no classes", config.where("model.head"),
              "a task with model.classes; the head of another task is always new");
}

/// Whether `folder` contains any kind of tokenizer.
bool has_tokenizer(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  return std::ranges::any_of(fs::directory_iterator(folder, ignored), [](const auto& entry) {
    const std::string name = entry.path().filename();
    return name == "tokenizer.json" || name == "vocab.txt" || name == "merges.txt" ||
           TokenizerFiles::is_sentencepiece_name(name);
  });
}

/// Selects the tokenizer that the model was trained with, unless data.tokenizer is set.
void adopt_tokenizer(const PublishedConfig& published, const std::string& folder,
                     RunConfig& config) {
  if (!config.origins.contains("data.tokenizer") && has_tokenizer(folder))
    set_key("data.tokenizer", folder, published.path, config);
}

/// Numbers classes as the model does, unless data.classes is set.
void adopt_class_names(const PublishedConfig& published, RunConfig& config) {
  const std::vector<std::string> names = class_names(published);
  if (names.empty() || config.origins.contains("data.classes") ||
      !keeps_classes(published.task, config))
    return;
  RunConfig theirs = config;
  theirs.data.classes = names;
  adopt_value("data.classes", theirs, published.path, false, config);
}

}  // namespace

std::optional<StoredRun> model_from_run(const RunConfig& config) {
  const std::string& path = config.model.from;
  if (exists_at(path) && exists_at(std::filesystem::path(base_folder(path)) / "config.json"))
    return std::nullopt;
  std::optional<StoredRun> run = find_stored_run(path);
  if (!exists_at(path))
    throw_input("no such file or directory; models are not downloaded", path,
                fmt::format("`hf download {} --local-dir DIRECTORY` (pip install huggingface_hub), "
                            "then use DIRECTORY instead of the name",
                            path.starts_with('/') ? std::filesystem::path(path).filename().string()
                                                  : path));
  if (!run)
    refuse_stored(path,
                  "a folder with the config.json and weights of transformers' save_pretrained(), ");
  return run;
}

void adopt_model_from(RunConfig& config) {
  if (config.model.from.empty()) return;
  const bool complete =
      std::ranges::all_of(std::array{"model.family", "model.task", "model.layers", "model.width",
                                     "model.heads", "model.vocab", "model.context"},
                          [&](const char* key) { return config.origins.contains(key); });
  if (complete) return;
  if (const auto run = model_from_run(config)) {
    adopt_stored(*run, config);
    return require_classes(config);
  }
  const std::string folder = base_folder(config.model.from);
  const PublishedConfig published = read_published_config(folder);
  adopt_published(published, config);
  adopt_tokenizer(published, folder, config);
  adopt_peft(config);
  adopt_class_names(published, config);
  require_classes(config);
  // Checks config.json before memory is allocated. A config.json alone is enough for `plan`.
  if (has_safetensors(folder)) PublishedWeights(folder, published, config);
}

void keep_model_from(const RunConfig& config) {
  if (config.model.from.empty()) return;
  const std::optional<StoredRun> run = model_from_run(config);
  keep_published_config(run ? kept_folder(run->config) : base_folder(config.model.from), config);
}

}  // namespace concertina
