#include "experiments/hugging_face/published_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/run/planning.h"
#include "io/datasets/sentences.h"
#include "io/file.h"
#include "io/strict_json.h"
#include "models/task.h"

namespace concertina {
namespace {

using PublishedJson = nlohmann::json;

constexpr std::uint64_t kMostConfigBytes = std::uint64_t{1} << 24;

/// Keys of any model that say nothing of what it computes.
constexpr std::string_view kUnusedKeys[] = {"architectures",
                                            "model_type",
                                            "transformers_version",
                                            "torch_dtype",
                                            "dtype",
                                            "initializer_range",
                                            "bos_token_id",
                                            "eos_token_id",
                                            "pad_token_id",
                                            "sep_token_id",
                                            "cls_token_id",
                                            "mask_token_id",
                                            "use_cache",
                                            "_name_or_path",
                                            "problem_type",
                                            "return_dict",
                                            "output_attentions",
                                            "output_hidden_states",
                                            "attention_dropout",
                                            "initializer_factor",
                                            "_attn_implementation",
                                            "_attn_implementation_autoset",
                                            "finetuning_task",
                                            "tokenizer_class",
                                            "torchscript",
                                            "is_encoder_decoder",
                                            "is_decoder",
                                            "num_labels",
                                            "id2label",
                                            "label2id",
                                            "task_specific_params",
                                            "tie_word_embeddings",
                                            "add_cross_attention"};

void flatten(const PublishedJson& object, const std::string& before,
             std::map<std::string, PublishedJson>& values) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && before.empty() && key != "id2label" && key != "label2id" &&
        key != "task_specific_params")
      flatten(value, key + ".", values);
    else if (!value.is_null())
      values[before + key] = value;
  }
}

/// num_labels is written as the names of the classes, where these are not two.
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

void check_rules(const PublishedConfig& published) {
  const HuggingFace& table = *published.table;
  std::set<std::string_view> known(std::begin(kUnusedKeys), std::end(kUnusedKeys));
  known.insert(table.unused.begin(), table.unused.end());
  for (const KeyElsewhere& key : table.keys) known.insert(key.theirs);
  for (const DerivedElsewhere& key : table.derived) known.insert(key.theirs);
  for (const RuleElsewhere& rule : table.rules) {
    known.insert(rule.theirs);
    const auto found = published.values.find(std::string(rule.theirs));
    if (found == published.values.end() && rule.may_lack) continue;
    const PublishedJson value = found == published.values.end() ? PublishedJson() : found->second;
    if (same_value(value, parsed(rule.value)) ||
        (!rule.or_else.empty() && same_value(value, parsed(rule.or_else))))
      continue;
    throw_input(fmt::format("{} = {} is not supported", rule.theirs, value.dump().substr(0, 100)),
                published.path, fmt::format("{} = {}", rule.theirs, rule.value));
  }
  for (const auto& [key, value] : published.values)
    if (!known.contains(key))
      throw_input(fmt::format("the key '{}' of a {} is not known here, and may change figures",
                              key.substr(0, 60), table.model_type),
                  published.path, "a config.json without it, if it does not");
}

/// The family whose table has `type`, and that table.
void find_family(const std::string& type, PublishedConfig& published) {
  std::string all;
  for (const auto& [name, family] : models()) {
    if (family.hugging_face == nullptr) continue;
    const HuggingFace& table = family.hugging_face();
    all += fmt::format("{}{}", all.empty() ? "" : ", ", table.model_type);
    if (table.model_type != type) continue;
    published.family = name;
    published.table = &table;
  }
  if (published.table == nullptr)
    throw_input(fmt::format("models of type '{}' are not supported", type.substr(0, 60)),
                published.path, "one of: " + all);
}

std::string task_of_architecture(const PublishedConfig& published, const PublishedJson& file) {
  const auto list = file.find("architectures");
  if (list == file.end() || list->is_null()) return "";
  if (!list->is_array() || list->size() != 1 || !(*list)[0].is_string())
    throw_input("'architectures' is no list of one name", published.path, "[\"...\"]");
  const std::string name = (*list)[0].get<std::string>();
  std::string all;
  for (const auto& [task, architecture] : published.table->architectures) {
    if (architecture == name) return std::string(task);
    all += fmt::format("{}{}", all.empty() ? "" : ", ", architecture);
  }
  throw_input(fmt::format("the architecture '{}' is not supported", name.substr(0, 60)),
              published.path, "one of: " + all);
}

/// As TOML has it, which for numbers, strings and booleans is as JSON has it.
std::string toml_text(const PublishedJson& value) {
  return value.dump();
}

/// The value of a key of ours; none if neither the file nor transformers' default says it. Input
/// error: two keys of theirs say two things, of which versions of transformers take either.
std::optional<std::pair<const KeyElsewhere*, PublishedJson>> value_of(
    const PublishedConfig& published, std::string_view ours) {
  const KeyElsewhere* usual = nullptr;
  std::optional<std::pair<const KeyElsewhere*, PublishedJson>> said;
  for (const KeyElsewhere& key : published.table->keys) {
    if (key.ours != ours) continue;
    if (!key.usual.empty()) usual = &key;
    const auto found = published.values.find(std::string(key.theirs));
    if (found == published.values.end()) continue;
    if (said && !same_value(said->second, found->second))
      throw_input(fmt::format("{} is {}, and {} is {}", said->first->theirs, said->second.dump(),
                              key.theirs, found->second.dump()),
                  published.path, "one of them, or the same value");
    if (!said) said.emplace(&key, found->second);
  }
  if (said || usual == nullptr) return said;
  return std::pair(usual, parsed(usual->usual));
}

void adopt_key(const PublishedConfig& published, const std::string& ours, RunConfig& config) {
  const auto found = value_of(published, ours);
  if (!found)
    throw_input(fmt::format("{} is not said", ours), published.path, "a whole config.json");
  const auto& [rule, value] = *found;
  if (value.is_structured())
    throw_input(fmt::format("{} is {}", rule->theirs, value.dump().substr(0, 60)), published.path,
                "one value");
  RunConfig theirs = config;
  try {
    set_key(ours, value.is_string() ? value.get<std::string>() : toml_text(value), published.path,
            theirs);
  } catch (const Error& error) {
    throw_input(fmt::format("{}: {}", rule->theirs, error.message()), published.path, error.fix());
  }
  adopt_value(ours, theirs, published.path, rule->at_most, config);
}

/// The value of one of our keys as JSON.
PublishedJson json_of(const RunConfig& config, std::string_view name) {
  RunConfig copy = config;
  return std::visit(
      [](const auto* value) -> PublishedJson {
        if constexpr (requires { PublishedJson(*value); })
          return PublishedJson(*value);
        else
          return {};
      },
      find_key(name)->field(copy));
}

void put(PublishedJson& file, std::string_view key, const PublishedJson& value) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos)
    file[std::string(key)] = value;
  else
    file[std::string(key.substr(0, dot))][std::string(key.substr(dot + 1))] = value;
}

/// Zero stands for what follows from the width; elsewhere the number itself is wanted.
PublishedJson written_value(const RunConfig& config, std::string_view ours) {
  PublishedJson value = json_of(config, ours);
  if (value != PublishedJson(0)) return value;
  if (ours.ends_with(".kv_heads")) return config.model.heads;
  if (ours == "model.llama.hidden") return (8 * config.model.width + 3 * 32 - 1) / (3 * 32) * 32;
  if (ours.ends_with(".hidden")) return 4 * config.model.width;
  return value;
}

}  // namespace

PublishedConfig read_published_config(const std::string& folder) {
  PublishedConfig published;
  published.path = (std::filesystem::path(folder) / "config.json").string();
  const PublishedJson file =
      parse_strict_object(read_file(published.path, kMostConfigBytes), published.path);
  if (!file.contains("model_type") || !file["model_type"].is_string())
    throw_input("there is no 'model_type'", published.path, "{\"model_type\": \"gpt2\", ...}");
  find_family(file["model_type"].get<std::string>(), published);
  flatten(file, "", published.values);
  count_labels(published.values);
  check_rules(published);
  published.task = task_of_architecture(published, file);
  return published;
}

void adopt_published(const PublishedConfig& published, RunConfig& config) {
  const auto adopt_text = [&](const std::string& name, const std::string& value) {
    if (!config.origins.contains(name)) return set_key(name, value, published.path, config);
    RunConfig copy = config;
    const std::string set = *std::get<std::string*>(find_key(name)->field(copy));
    if (set != value && name == "model.family")
      throw_input(fmt::format("{} = {}, but the model of model.from is a {}", name, set, value),
                  config.where(name), fmt::format("{} = {}", name, value));
  };
  adopt_text("model.family", published.family);
  if (!published.task.empty()) adopt_text("model.task", published.task);
  std::set<std::string> done;
  for (const KeyElsewhere& key : published.table->keys) {
    // The classes of a head that is not there, or that another takes the place of.
    if (key.ours == "model.classes" &&
        (published.task != "classification" || config.model.task != published.task ||
         config.model.head == "new"))
      continue;
    if (done.insert(std::string(key.ours)).second)
      adopt_key(published, std::string(key.ours), config);
  }
  for (const DerivedElsewhere& key : published.table->derived) {
    const auto said = published.values.find(std::string(key.theirs));
    const std::int64_t value = key.value(model_config_of(config));
    if (said != published.values.end() && !same_value(said->second, value))
      throw_input(fmt::format("{} = {} is not supported", key.theirs, said->second.dump()),
                  published.path, fmt::format("{} = {}, which the sizes make", key.theirs, value));
  }
}

namespace {

/// The token that pads the samples of a run whose head reads the last that does not: transformers
/// finds that one by it. None: nothing depends on it, or the run has no data.
std::optional<std::int64_t> padding_token(const RunConfig& config) {
  if (data_files(config).empty()) return std::nullopt;
  const std::vector<Field> reads = model_of(config)->spec().units.back().reads;
  if (std::ranges::find(reads, lengths_field()) == reads.end()) return std::nullopt;
  return SentenceEncoder(tokenizer_of(config)).padding();
}

}  // namespace

std::string kept_folder(const RunConfig& config) {
  return run_directory(config) + "/model";
}

void keep_published_config(const std::string& folder, const RunConfig& config) {
  const std::string path = folder + "/config.json";
  if (std::error_code error; !std::filesystem::exists(path, error)) return;
  make_directories(kept_folder(config));
  atomic_replace(kept_folder(config) + "/config.json", read_file(path, kMostConfigBytes));
}

std::optional<std::string> kept_published_config(const RunConfig& config, const std::string& type) {
  const std::string path = kept_folder(config) + "/config.json";
  if (std::error_code error; !std::filesystem::exists(path, error)) return std::nullopt;
  const PublishedConfig kept = read_published_config(kept_folder(config));
  RunConfig copy = config;
  copy.origins.clear();
  adopt_published(kept, copy);
  copy.origins = config.origins;
  const auto says = kept.values.find("dtype");
  const bool same_type = says == kept.values.end() || says->second == type;
  const std::optional<std::int64_t> padding = padding_token(config);
  const auto pads = kept.values.find("pad_token_id");
  const bool same_padding = !padding || (pads != kept.values.end() && pads->second == *padding);
  if (!(copy == config) || kept.task.empty() || !same_type || !same_padding) return std::nullopt;
  return read_file(path, kMostConfigBytes);
}

const HuggingFace& hugging_face_of(const RunConfig& config) {
  const auto found = std::ranges::find(models(), config.model.family, &Entry<Family>::name);
  if (found == models().end() || found->value.hugging_face == nullptr)
    throw_input(
        fmt::format("models of the family {} are not known to transformers", config.model.family),
        config.where("model.family"), "gpt, llama, bert or vit");
  return found->value.hugging_face();
}

std::string published_config_text(const RunConfig& config, const std::string& type) {
  const HuggingFace& table = hugging_face_of(config);
  const Family& family = lookup(models(), config.model.family, "model family", "model.family");
  const std::string_view task =
      config.model.task == "auto" ? family.usual_task : std::string_view(config.model.task);
  const auto architecture = std::ranges::find(
      table.architectures, task, &std::pair<std::string_view, std::string_view>::first);
  if (architecture == table.architectures.end())
    throw_input(fmt::format("transformers has no {} for {}", table.model_type, task),
                config.where("model.task"), "another task");
  PublishedJson file;
  file["architectures"] = {architecture->second};
  file["model_type"] = table.model_type;
  file["dtype"] = type;
  for (const RuleElsewhere& rule : table.rules) put(file, rule.theirs, parsed(rule.value));
  for (const KeyElsewhere& key : table.keys)
    if (key.written && key.theirs != "num_labels")
      put(file, key.theirs, written_value(config, key.ours));
  if (task == "classification" && config.model.classes != 2)
    for (int label = 0; label < config.model.classes; ++label) {
      file["id2label"][std::to_string(label)] = fmt::format("LABEL_{}", label);
      file["label2id"][fmt::format("LABEL_{}", label)] = label;
    }
  if (const auto padding = padding_token(config)) file["pad_token_id"] = *padding;
  return file.dump(2) + "\n";
}

}  // namespace concertina
