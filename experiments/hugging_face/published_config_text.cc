#include "experiments/hugging_face/published_config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/run/planning.h"
#include "io/datasets/sentences.h"
#include "io/file.h"
#include "io/run_files.h"
#include "models/task.h"

namespace concertina {
namespace {

using PublishedJson = nlohmann::json;

/// The value of one of our keys as JSON.
PublishedJson json_of(const RunConfig& config, std::string_view name) {
  return visit_value(*find_key(name), config, [](const auto& value) -> PublishedJson {
    if constexpr (requires { PublishedJson(value); })
      return PublishedJson(value);
    else
      return {};
  });
}

/// The place of a key in config.json, with dots between the keys of nested objects.
PublishedJson::json_pointer place_of(std::string_view key) {
  std::string path = fmt::format("/{}", key);
  std::ranges::replace(path, '.', '/');
  return PublishedJson::json_pointer(path);
}

/// The value of `key` for config.json.
PublishedJson written_value(const RunConfig& config, const KeyMapping& key) {
  const PublishedJson value = json_of(config, key.ours);
  for (const SameWord& word : key.words)
    if (value == word.ours) return PublishedJson::parse(word.theirs);
  if (key.zero != nullptr && value == PublishedJson(0)) return key.zero(model_config_of(config));
  if (!key.null.empty() && value == PublishedJson::parse(key.null)) return {};
  if (key.more != 0) return value.get<std::int64_t>() + rows_before_positions(config, key.more);
  return value;
}

/// The padding token, which transformers uses to find the last non-padding token for the head.
/// nullopt: nothing depends on it, or the run has no data.
std::optional<std::int64_t> padding_token(const RunConfig& config) {
  if (data_files(config).empty()) return std::nullopt;
  const std::vector<Field> reads = model_of(config)->spec().units.back().reads;
  if (std::ranges::find(reads, lengths_field()) == reads.end()) return std::nullopt;
  return SentenceEncoder(tokenizer_of(config)).padding();
}

bool fixed_as(const RunConfig& config, const FixedKey& fixed) {
  RunConfig theirs = config;
  set_key(std::string(fixed.ours), std::string(fixed.value), "", theirs);
  return json_of(theirs, fixed.ours) == json_of(config, fixed.ours);
}

/// `defaults`: a default config.
bool is_written(const RunConfig& config, const RunConfig& defaults, const KeyMapping& key) {
  const bool here = key.where.empty() || std::ranges::any_of(key.where, [&](const FixedKey& fixed) {
                      return fixed_as(config, fixed);
                    });
  if (!here || key.written == KeyMapping::Written::always) return here;
  return key.written == KeyMapping::Written::if_set &&
         json_of(config, key.ours) != json_of(defaults, key.ours);
}

/// transformers' class of this model type for the task of `config`; null if the type has none.
const Architecture* architecture_of(const HuggingFace& table, const RunConfig& config) {
  const std::string_view task = task_name(config);
  const bool sequence =
      std::ranges::any_of(kProblemTypes, [&](const auto& one) { return one.first == task; });
  const auto found = std::ranges::find(
      table.architectures, sequence ? kProblemTypes[0].first : task, &Architecture::task);
  return found == table.architectures.end() ? nullptr : &*found;
}

/// Whether a config.json of this type can express everything in `config` about its model.
bool says_all(const HuggingFace& table, const RunConfig& config) {
  if (table.family != config.model.family) return false;
  if (!std::ranges::all_of(table.fixed, [&](const FixedKey& key) { return fixed_as(config, key); }))
    return false;
  const RunConfig defaults;
  const Family& family = lookup(models(), config.model.family, "model family", "model.family");
  return std::ranges::all_of(family.options, [&](const Option& option) {
    const std::string name = fmt::format("model.{}.{}", config.model.family, option.name);
    const auto key = std::ranges::find(table.keys, name, &KeyMapping::ours);
    const bool fixed = std::ranges::find(table.fixed, name, &FixedKey::ours) != table.fixed.end();
    if (fixed || json_of(config, name) == json_of(defaults, name)) return true;
    if (key == table.keys.end()) return false;
    return key->words.empty() || std::ranges::any_of(key->words, [&](const SameWord& word) {
             return json_of(config, name) == word.ours;
           });
  });
}

void erase(PublishedJson& file, std::string_view key) {
  const PublishedJson::json_pointer place = place_of(key);
  if (!file.contains(place)) return;
  PublishedJson& object = file[place.parent_pointer()];
  object.erase(place.back());
  if (object.empty() && &object != &file) file.erase(place.parent_pointer().back());
}

/// The config.json that the model of a run came with; nullopt if it came without one.
std::optional<PublishedConfig> kept_config(const RunConfig& config) {
  if (!exists_at(kept_folder(config) + "/config.json")) return std::nullopt;
  return read_published_config(kept_folder(config));
}

/// The parts of the model's original config.json that we would not write, such as special tokens,
/// and the class names if their number is unchanged; empty if the type differs.
PublishedJson kept_rest(const RunConfig& config, const HuggingFace& table, std::string_view task) {
  const std::optional<PublishedConfig> kept = kept_config(config);
  if (!kept || kept->table != &table) return PublishedJson::object();
  auto file =
      PublishedJson::parse(read_file(kept_folder(config) + "/config.json", kMostConfigBytes));
  for (const KeyMapping& key : table.keys) erase(file, key.theirs);
  for (const RuleMapping& rule : table.rules) erase(file, rule.theirs);
  for (const DerivedMapping& key : table.derived) erase(file, key.theirs);
  for (const char* other : {"torch_dtype", "transformers_version", "problem_type"})
    erase(file, other);
  const auto classes = kept->values.find("num_labels");
  const bool same = kept->task == task && keeps_classes(kept->task, config) &&
                    classes != kept->values.end() && classes->second == config.model.classes;
  if (!same)
    for (const char* names : {"id2label", "label2id"}) erase(file, names);
  return file;
}

/// id2label and label2id in the format of config.json.
PublishedJson numbered(const std::vector<std::string>& names) {
  PublishedJson file;
  for (std::size_t label = 0; label < names.size(); ++label) {
    file["id2label"][std::to_string(label)] = names[label];
    file["label2id"][names[label]] = label;
  }
  return file;
}

std::vector<std::string> default_names(int classes) {
  std::vector<std::string> names;
  for (int label = 0; label < classes; ++label) names.push_back(fmt::format("LABEL_{}", label));
  return names;
}

/// The names of the classes from the config or the run's data; empty if their number differs.
std::vector<std::string> names_of_classes(const RunConfig& config) {
  std::vector<std::string> names =
      config.data.classes.empty() ? kept_classes(config) : config.data.classes;
  if (!std::cmp_equal(names.size(), config.model.classes)) names.clear();
  return names;
}

}  // namespace

std::string kept_folder(const RunConfig& config) {
  return run_file(run_directory(config), kModelFolder);
}

void keep_published_config(const std::string& folder, const RunConfig& config) {
  const std::string path = folder + "/config.json";
  if (!exists_at(path)) return;
  make_directories(kept_folder(config));
  std::string text = read_file(path, kMostConfigBytes);
  // Without model_type, the type is derived from the tensors, which are not kept.
  if (auto file = nlohmann::ordered_json::parse(text); !file.contains("model_type")) {
    file["model_type"] = read_published_config(folder).type;
    text = file.dump(2) + "\n";
  }
  atomic_replace(kept_folder(config) + "/config.json", text);
  for (const char* other : {kGenerationConfig, kPreprocessorConfig})
    if (exists_at(fmt::format("{}/{}", folder, other)))
      atomic_replace(fmt::format("{}/{}", kept_folder(config), other),
                     read_file(fmt::format("{}/{}", folder, other), kMostConfigBytes));
}

std::optional<std::string> kept_published_config(const RunConfig& config, const std::string& type) {
  const std::optional<PublishedConfig> kept = kept_config(config);
  if (!kept) return std::nullopt;
  RunConfig copy = config;
  copy.origins.clear();
  adopt_published(*kept, copy);
  copy.origins = config.origins;
  const auto says = kept->values.find("dtype");
  const bool same_type = says == kept->values.end() || says->second == type;
  const std::optional<std::int64_t> padding = padding_token(config);
  const auto pads = kept->values.find("pad_token_id");
  const bool same_padding = !padding || (pads != kept->values.end() && pads->second == *padding);
  const std::vector<std::string> names = names_of_classes(config);
  const bool same_names = names.empty() || names == class_names(*kept);
  if (!(copy == config) || kept->task.empty() || !same_type || !same_padding || !same_names)
    return std::nullopt;
  return read_file(kept_folder(config) + "/config.json", kMostConfigBytes);
}

const Entry<HuggingFace>& hugging_face_of(const RunConfig& config) {
  const std::optional<PublishedConfig> kept = kept_config(config);
  const std::string_view kept_type = kept ? std::string_view(kept->type) : "";
  const Entry<HuggingFace>* found = nullptr;
  // Prefers a type that supports the task over the model's original type.
  const auto worth = [&](const Entry<HuggingFace>& entry) {
    return 2 * (architecture_of(entry.value, config) != nullptr) + (entry.name == kept_type);
  };
  for (const Entry<HuggingFace>& entry : published_models())
    if (says_all(entry.value, config) && (found == nullptr || worth(entry) > worth(*found)))
      found = &entry;
  if (found != nullptr) return *found;
  std::string all;
  for (const auto& [type, table] : published_models())
    if (table.family == config.model.family)
      all += fmt::format("{}{}", all.empty() ? "" : ", ", type);
  throw_input(
      all.empty()
          ? fmt::format("transformers has no model for the family {}", config.model.family)
          : fmt::format("no transformers model has all options of this {}", config.model.family),
      config.where("model.family"),
      all.empty() ? fmt::format("one of: {}", fmt::join(names_of(published_models()), ", "))
                  : "the options of one of these: " + all);
}

std::string_view task_name(const RunConfig& config) {
  return config.model.task != "auto"
             ? std::string_view(config.model.task)
             : lookup(models(), config.model.family, "model family", "model.family").default_task;
}

std::int64_t rows_before_positions(const RunConfig& config, std::int64_t defaults) {
  const std::optional<PublishedConfig> kept = defaults == 0 ? std::nullopt : kept_config(config);
  return kept && kept->table == &hugging_face_of(config).value ? kept->rows_before(defaults)
                                                               : defaults;
}

std::string published_config_text(const RunConfig& config, const std::string& type) {
  const auto& [model_type, table] = hugging_face_of(config);
  const std::string_view task = task_name(config);
  const auto* const problem =
      std::ranges::find(kProblemTypes, task, [](const auto& one) { return one.first; });
  const Architecture* const architecture = architecture_of(table, config);
  if (architecture == nullptr)
    throw_input(fmt::format("transformers has no {} for {}", model_type, task),
                config.where("model.task"), "another task");
  const RunConfig defaults;
  PublishedJson file = kept_rest(config, table, task);
  file["architectures"] = {architecture->name};
  file["model_type"] = model_type;
  file["dtype"] = type;
  for (const RuleMapping& rule : table.rules)
    file[place_of(rule.theirs)] = PublishedJson::parse(rule.value);
  for (const KeyMapping& key : table.keys) {
    if (is_written(config, defaults, key) && key.theirs != "num_labels")
      file[place_of(key.theirs)] = written_value(config, key);
  }
  if (problem != std::begin(kProblemTypes) && problem != std::end(kProblemTypes))
    file["problem_type"] = problem->second;
  if (const std::vector<std::string> names = names_of_classes(config); !names.empty())
    file.update(numbered(names));
  else if (find_task(task).classes && config.model.classes != 2 && !file.contains("id2label"))
    file.update(numbered(default_names(config.model.classes)));
  if (const auto padding = padding_token(config)) file["pad_token_id"] = *padding;
  return file.dump(2) + "\n";
}

}  // namespace concertina
