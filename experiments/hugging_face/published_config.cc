#include "experiments/hugging_face/published_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/run/planning.h"
#include "io/checkpoint/safetensors_folder.h"
#include "io/file.h"
#include "io/strict_json.h"
#include "models/task.h"

namespace concertina {
namespace {

using PublishedJson = nlohmann::json;

constexpr std::int64_t kMostRows = std::int64_t{1} << 30;  // before the first position

/// Keys that do not affect results, and why.
constexpr std::string_view kHarmless[] = {
    // Read where they are needed:
    "architectures", "model_type", "num_labels", "problem_type", "is_decoder",
    "add_cross_attention", "tie_word_embeddings",
    // Origin of the file:
    "_name_or_path", "_commit_hash", "transformers_version", "tokenizer_class", "finetuning_task",
    "language", "name",
    // Code in the folder, which is never run:
    "auto_map",
    // Special tokens, which the tokenizer defines:
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "mask_token_id",
    "eos_token_ids", "prefix", "decoder_start_token_id",
    // Storage type, which the files specify:
    "torch_dtype", "dtype", "use_bfloat16",
    // Return values of transformers' classes:
    "return_dict", "output_attentions", "output_hidden_states", "output_past", "use_cache",
    "output_scores", "return_dict_in_generate",
    // How transformers loads or runs the model:
    "torchscript", "_attn_implementation", "_attn_implementation_autoset",
    "chunk_size_feed_forward", "use_return_dict", "is_encoder_decoder", "tie_encoder_decoder",
    "cross_attention_hidden_size", "tf_legacy_loss", "xla_device",
    // Pruned heads, which would change the shapes of the weights:
    "pruned_heads",
    // Initialization of new weights:
    "initializer_range", "initializer_factor",
    // Training:
    "gradient_checkpointing", "training", "pre_trained", "num_steps", "max_sequence_length",
    // Names of classes:
    "_num_labels", "id2label", "label2id",
    // Text generation: length and search:
    "task_specific_params", "max_length", "min_length", "do_sample", "num_beams", "num_beam_groups",
    "num_return_sequences", "early_stopping", "remove_invalid_values",
    // Text generation: choice of the next token:
    "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "diversity_penalty", "exponential_decay_length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
    "forced_bos_token_id", "forced_eos_token_id",
    // Other libraries:
    "sentence_transformers", "transformers.js_config", "custom_pipelines", "emb_size", "cell",
    "structure", "learned_embeddings"};

/// Whether `key` of a config.json, or an object that contains it, does not affect the results of
/// any model; for example, "task_specific_params.text-generation" does not.
bool is_harmless(std::string_view key) {
  return std::ranges::any_of(kHarmless, [&](std::string_view one) {
    return key == one || (key.starts_with(one) && key[one.size()] == '.');
  });
}

void flatten(const PublishedJson& object, const std::string& before, PublishedConfig& published) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && before.empty() && key != "id2label" && key != "label2id" &&
        key != "task_specific_params")
      flatten(value, key + ".", published);
    else if (value.is_null())
      published.nulls.insert(before + key);
    else
      published.values[before + key] = value;
  }
}

/// Derives num_labels from the class names: transformers omits it unless there are two.
void count_labels(std::map<std::string, PublishedJson>& values) {
  const auto names = values.find("id2label");
  if (names != values.end() && names->second.is_object())
    values["num_labels"] = names->second.size();
  else if (!values.contains("num_labels"))
    values["num_labels"] = 2;
}

PublishedJson parsed(std::string_view text) {
  return PublishedJson::parse(text);
}

bool same_value(const PublishedJson& a, const PublishedJson& b) {
  return a == b || (a.is_number() && b.is_number() && a.get<double>() == b.get<double>());
}

void check_rule(const RuleMapping& rule, const PublishedConfig& published) {
  const auto found = published.values.find(std::string(rule.theirs));
  const bool there = found != published.values.end();
  if (!there && (rule.value == "false" || !published.nulls.contains(std::string(rule.theirs))))
    return;
  const PublishedJson value = there ? found->second : PublishedJson();
  if (same_value(value, parsed(rule.value)) ||
      (!rule.or_else.empty() && same_value(value, parsed(rule.or_else))))
    return;
  throw_input(fmt::format("{} = {} is not supported", rule.theirs, value.dump().substr(0, 100)),
              published.path, fmt::format("{} = {}", rule.theirs, rule.value));
}

void check_rules(const PublishedConfig& published) {
  const HuggingFace& table = *published.table;
  std::set<std::string_view> known(table.unused.begin(), table.unused.end());
  for (const KeyMapping& key : table.keys) known.insert(key.theirs);
  for (const DerivedMapping& key : table.derived) known.insert(key.theirs);
  for (const HeadDropout& key : table.head_dropouts) known.insert(key.theirs);
  for (const RuleMapping& rule : table.rules) {
    known.insert(rule.theirs);
    check_rule(rule, published);
  }
  for (const auto& [key, value] : published.values)
    if (!known.contains(key) && !is_harmless(key))
      throw_input(fmt::format("unknown key '{}' of a {} model, which may change results",
                              key.substr(0, 60), published.type),
                  published.path, "remove it from config.json if it does not change results");
}

std::string all_types() {
  return fmt::format("{}", fmt::join(names_of(published_models()), ", "));
}

/// The model type for a config.json that lacks one, as in early versions: the type whose tensor
/// names begin like the folder's; if there are several, the one that has the architecture.
std::string type_of_tensors(const std::string& folder, const std::string& path,
                            const PublishedJson& file) {
  std::set<std::string> found;
  if (has_safetensors(folder))
    for (const std::string& name : SafetensorsFolder(folder).names())
      for (const auto& [type, table] : published_models())
        if (name.starts_with(table.body)) found.insert(std::string(type));
  std::set<std::string> fitting = found;
  for (const auto& [type, table] : published_models())
    if (std::ranges::none_of(table.architectures, [&](const Architecture& one) {
          return file.value("architectures", PublishedJson()) == PublishedJson{one.name};
        }))
      fitting.erase(std::string(type));
  if (fitting.size() == 1) return *fitting.begin();
  if (found.size() != 1)
    throw_input(found.empty() ? std::string("there is no 'model_type'")
                              : fmt::format("there is no 'model_type', and the tensor names "
                                            "match several model types: {}",
                                            fmt::join(found, ", ")),
                path,
                fmt::format(R"({{"model_type": "{}", ...}})",
                            fmt::join(found.empty() ? std::set<std::string>{"gpt2"} : found,
                                      R"(", ...}} or {{"model_type": ")")));
  return *found.begin();
}

void find_type(const std::string& type, PublishedConfig& published) {
  const auto found = std::ranges::find(published_models(), type, &Entry<HuggingFace>::name);
  if (found == published_models().end())
    throw_input(fmt::format("models of type '{}' are not supported", type.substr(0, 60)),
                published.path, "one of: " + all_types());
  published.type = type;
  published.table = &found->value;
  published.family = found->value.family;
}

std::string task_of_architecture(const PublishedConfig& published, const PublishedJson& file) {
  const auto list = file.find("architectures");
  if (list == file.end() || list->is_null()) return "";
  if (!list->is_array() || list->size() != 1 || !(*list)[0].is_string())
    throw_input("'architectures' is not a list with one name", published.path, "[\"...\"]");
  const std::string name = (*list)[0].get<std::string>();
  std::string all;
  for (const Architecture& one : published.table->architectures) {
    if (one.name == name) return std::string(one.task);
    all += fmt::format("{}{}", all.empty() ? "" : ", ", one.name);
  }
  throw_input(fmt::format("the architecture '{}' is not supported", name.substr(0, 60)),
              published.path, "one of: " + all);
}

/// Selects one of an architecture's several tasks, as transformers does in training. Without
/// problem_type, a single class means regression.
std::string task_of_problem(const PublishedConfig& published) {
  const auto declared = published.values.find("problem_type");
  if (declared == published.values.end())
    return published.values.at("num_labels") == 1 ? "regression" : published.task;
  for (const auto& [task, problem] : kProblemTypes)
    if (declared->second == problem) return std::string(task);
  throw_input(
      fmt::format("problem_type = {} is not supported", declared->second.dump().substr(0, 100)),
      published.path,
      "\"single_label_classification\", \"multi_label_classification\" or "
      "\"regression\"");
}

/// The value as config text: numbers and booleans as in JSON, names translated by the table. Input
/// errors: an unknown name, or a value that should be a number but is not.
std::string config_text(const PublishedConfig& published, const KeyMapping& key,
                        const PublishedJson& value) {
  if (key.words.empty()) {
    if (value.is_structured())
      throw_input(fmt::format("{} is {}", key.theirs, value.dump().substr(0, 60)), published.path,
                  "a single value");
    if (key.more != 0 && value.is_number_integer())
      return std::to_string(value.get<std::int64_t>() - published.rows_before(key.more));
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  std::string all;
  for (const SameWord& word : key.words) {
    if (same_value(parsed(word.theirs), value)) return std::string(word.ours);
    all += fmt::format("{}{}", all.empty() ? "" : ", ", word.theirs);
  }
  throw_input(fmt::format("{} = {} is not supported", key.theirs, value.dump().substr(0, 100)),
              published.path, "one of: " + all);
}

/// A key of config.json that sets one of our keys.
struct DeclaredValue {
  const KeyMapping* key = nullptr;
  std::string text;  // the value as config text
};

/// The value of one of our keys; nullopt if neither the file nor transformers' defaults have it.
/// Input error: two keys of the file disagree, and transformers' versions differ in which they use.
std::optional<DeclaredValue> declared_value(const PublishedConfig& published,
                                            std::string_view ours) {
  const KeyMapping* default_value = nullptr;
  std::optional<DeclaredValue> declared;
  for (const KeyMapping& key : published.table->keys) {
    if (key.ours != ours) continue;
    if (!key.default_value.empty() && default_value == nullptr) default_value = &key;
    if (published.nulls.contains(key.theirs)) {
      if (!declared && !key.null.empty())
        declared = DeclaredValue{&key, config_text(published, key, parsed(key.null))};
      // A default of 0 means that there is no value.
      if (key.null.empty() && key.use != KeyMapping::Use::advice &&
          (key.default_value.empty() || !same_value(parsed(key.default_value), 0)))
        throw_input(fmt::format("{} = null is not supported", key.theirs), published.path,
                    "a value");
    }
    const auto found = published.values.find(key.theirs);
    if (found == published.values.end()) continue;
    if (!key.null.empty() && same_value(found->second, parsed(key.null)))
      throw_input(fmt::format("{} = {} is not supported", key.theirs, found->second.dump()),
                  published.path, fmt::format("{} = null", key.theirs));
    const std::string text = config_text(published, key, found->second);
    if (declared && key.use != KeyMapping::Use::advice && declared->text != text &&
        !same_value(parsed(published.values.at(declared->key->theirs).dump()), found->second))
      throw_input(fmt::format("{} is {}, and {} is {}", declared->key->theirs, declared->text,
                              key.theirs, text),
                  published.path, "one of them, or the same value for both");
    if (!declared) declared = DeclaredValue{&key, text};
  }
  if (declared || default_value == nullptr) return declared;
  return DeclaredValue{
      default_value, config_text(published, *default_value, parsed(default_value->default_value))};
}

/// Sets one of our keys. A key that is only advisory does not override the config.
void adopt_key(const PublishedConfig& published, const std::string& ours, RunConfig& config) {
  const auto declared = declared_value(published, ours);
  if (!declared)
    throw_input(fmt::format("{} is missing", ours), published.path, "a complete config.json");
  const bool advice = declared->key->use == KeyMapping::Use::advice;
  if (advice && config.origins.contains(ours)) return;
  RunConfig theirs = config;
  try {
    set_key(ours, declared->text, published.path, theirs);
  } catch (const Error& error) {
    throw_input(fmt::format("{}: {}", declared->key->theirs, error.message()), published.path,
                error.fix());
  }
  adopt_value(ours, theirs, published.path, declared->key->use == KeyMapping::Use::at_most, config);
}

void adopt_fixed(const FixedKey& fixed, const PublishedConfig& published, RunConfig& config) {
  RunConfig theirs = config;
  set_key(std::string(fixed.ours), std::string(fixed.value), published.path, theirs);
  adopt_value(std::string(fixed.ours), theirs, published.path, false, config);
}

}  // namespace

std::vector<std::string> class_names(const PublishedConfig& published) {
  const auto declared = published.values.find("id2label");
  if (declared == published.values.end() || !declared->second.is_object()) return {};
  std::vector<std::string> names;
  bool own = false;
  for (std::size_t label = 0; label < declared->second.size(); ++label) {
    const auto name = declared->second.find(std::to_string(label));
    if (name == declared->second.end() || !name->is_string()) return {};
    names.push_back(name->get<std::string>());
    own = own || names.back() != fmt::format("LABEL_{}", label);
  }
  if (!own || std::set(names.begin(), names.end()).size() != names.size()) return {};
  return names;
}

bool keeps_classes(const std::string& task, const RunConfig& config) {
  return !task.empty() && config.model.task == task && config.model.head != "new" &&
         find_task(task).classes;
}

std::int64_t PublishedConfig::rows_before(std::int64_t default_value) const {
  const std::string key(table->positions_after);
  const auto found = values.find(key);
  if (key.empty() || (found == values.end() && !nulls.contains(key))) return default_value;
  if (found == values.end() || !found->second.is_number_unsigned() || found->second > kMostRows)
    throw_input(fmt::format("{} = {} is not supported: positions start after it", key,
                            found == values.end() ? "null" : found->second.dump().substr(0, 100)),
                path, fmt::format("{} = {}", key, default_value - 1));
  return found->second.get<std::int64_t>() + 1;
}

PublishedConfig read_published_config(const std::string& folder) {
  PublishedConfig published;
  published.path = (std::filesystem::path(folder) / "config.json").string();
  const PublishedJson file =
      parse_strict_object(read_file(published.path, kMostConfigBytes), published.path);
  const auto type = file.find("model_type");
  find_type(type != file.end() && type->is_string() ? type->get<std::string>()
                                                    : type_of_tensors(folder, published.path, file),
            published);
  flatten(file, "", published);
  count_labels(published.values);
  check_rules(published);
  published.task = task_of_architecture(published, file);
  if (published.task == "classification") published.task = task_of_problem(published);
  return published;
}

void adopt_published(const PublishedConfig& published, RunConfig& config) {
  const auto adopt_text = [&](const std::string& name, const std::string& value) {
    if (!config.origins.contains(name)) return set_key(name, value, published.path, config);
    const std::string& set = *value_if<std::string>(*find_key(name), config);
    if (set != value && name == "model.family")
      throw_input(fmt::format("{} = {}, but the model in model.from is a {}", name, set, value),
                  config.where(name), fmt::format("{} = {}", name, value));
  };
  adopt_text("model.family", published.family);
  if (!published.task.empty()) adopt_text("model.task", published.task);
  std::set<std::string> done;
  for (const KeyMapping& key : published.table->keys) {
    // Skips the number of classes of a head that is missing or replaced.
    if (key.ours == "model.classes" && !keeps_classes(published.task, config)) continue;
    if (done.insert(std::string(key.ours)).second)
      adopt_key(published, std::string(key.ours), config);
  }
  for (const FixedKey& key : published.table->fixed) adopt_fixed(key, published, config);
  for (const DerivedMapping& key : published.table->derived) {
    const auto declared = published.values.find(std::string(key.theirs));
    const std::string value = key.value(model_config_of(config));
    if (declared != published.values.end() && !same_value(declared->second, parsed(value)))
      throw_input(
          fmt::format("{} = {} is not supported", key.theirs,
                      declared->second.dump().substr(0, 100)),
          published.path,
          fmt::format("{} = {}, as its other keys imply", key.theirs, value.substr(0, 100)));
  }
}

}  // namespace concertina
