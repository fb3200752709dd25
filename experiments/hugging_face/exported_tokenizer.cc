#include "experiments/hugging_face/exported_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/run/planning.h"
#include "io/datasets/sentences.h"
#include "io/tokenizers/special_tokens.h"
#include "models/task.h"

namespace concertina {
namespace {

using SettingsJson = nlohmann::json;

bool reads(const RunConfig& config, const std::string& field) {
  return std::ranges::any_of(fields_of(model_of(config)->spec()),
                             [&](const Field& one) { return one.name == field; });
}

/// Special tokens by role, and the names of all marks.
struct Specials {
  std::map<SpecialToken, std::int32_t> ids;
  std::map<std::int32_t, std::string> names;
};

/// The special tokens of the tokenizer itself.
Specials own_specials(const Tokenizer& tokenizer) {
  Specials all;
  for (const SpecialKey& special : kSpecialKeys)
    if (const auto id = tokenizer.special(special.token)) {
      all.ids[special.token] = *id;
      all.names[*id] = tokenizer.name(*id);
    }
  return all;
}

/// `name`, in as many brackets as are needed to make it differ from all names in the vocabulary.
std::string unused_name(const Tokenizer& tokenizer, std::string name) {
  for (std::int32_t id = 0; std::cmp_less(id, tokenizer.vocabulary()); ++id)
    if (tokenizer.name(id) == name) return unused_name(tokenizer, fmt::format("[{}]", name));
  return name;
}

/// Adds the marks that the run puts around texts, and all tokens after the vocabulary, so that ids
/// are contiguous. A token that also occurs in texts gets no role: transformers would search texts
/// for it before it looks for other tokens.
void add_marks(const SentenceEncoder& encoder, const Tokenizer& tokenizer, Specials& all) {
  struct Role {
    SpecialToken token;
    std::int32_t id;
    const char* name;  // if the vocabulary has no name for it
  };
  for (const auto& [role, id, name] : {Role{SpecialToken::classify, encoder.classify(), "[CLS]"},
                                       Role{SpecialToken::separate, encoder.separator(), "[SEP]"},
                                       Role{SpecialToken::padding, encoder.padding(), "[PAD]"},
                                       Role{SpecialToken::mask, encoder.mask(), "[MASK]"}}) {
    if (role == SpecialToken::padding && all.ids.contains(role) && all.ids[role] != id)
      all.ids.erase(role);  // in the files, the padding token also ends texts
    if (id < tokenizer.vocabulary() && !all.names.contains(id)) continue;
    if (role == SpecialToken::mask && id < tokenizer.vocabulary() && !all.ids.contains(role))
      continue;
    all.ids.emplace(role, id);
    all.names.emplace(id, id < tokenizer.vocabulary() ? name : unused_name(tokenizer, name));
  }
  for (const Marks::Part& part : encoder.parts(/*pair=*/true))
    if (part.text < 0 && !all.names.contains(part.token))
      all.names[part.token] = tokenizer.name(part.token);
}

/// The text of tokenizer_config.json, including the settings that the model came with. `made`:
/// tokenizer.json differs from what the tokenizer's own class would create from its files.
std::string settings_of(const RunConfig& config, const FileTexts& files, const Specials& specials,
                        bool made) {
  SettingsJson settings = merged_settings([&](const char* name) {
    const auto kept = files.find(name);
    return kept == files.end() ? std::pair<std::string, std::string>()
                               : std::pair(kept->second, name);
  });
  const auto set_if_none = [&](const char* key, const SettingsJson& value) {
    if (!settings.contains(key) || settings[key].is_null()) settings[key] = value;
  };
  const char* const general =
      files.contains(kTokenizerJson) ? "PreTrainedTokenizerFast" : "LlamaTokenizer";
  set_if_none("tokenizer_class", general);
  if (made) settings["tokenizer_class"] = general;
  settings["model_max_length"] = config.model.context;
  set_if_none("padding_side", is_causal_lm(config) ? "left" : "right");
  set_if_none("clean_up_tokenization_spaces", false);
  SettingsJson inputs = {"input_ids", "attention_mask"};
  if (reads(config, types_field(1).name)) inputs.push_back("token_type_ids");
  settings["model_input_names"] = inputs;
  for (const SpecialKey& special : kSpecialKeys) {
    const auto id = specials.ids.find(special.token);
    if (id != specials.ids.end())
      set_if_none(special.key, specials.names.at(id->second));
    else if (special.token == SpecialToken::padding)
      settings.erase(special.key);
  }
  return settings.dump(2) + "\n";
}

}  // namespace

FileTexts exported_tokenizer(const RunConfig& config) {
  if (!reads(config, "tokens")) return {};
  const std::string where = config.where("data.tokenizer");
  const auto tokenizer = tokenizer_of(config);
  FileTexts files = tokenizer_files(config.data.tokenizer, where);
  Specials specials = own_specials(*tokenizer);
  const Marks* around = nullptr;
  Marks marks;
  if (!is_causal_lm(config)) {
    const bool masks = task_of(config.model.family, config.model.task).masks;
    const SentenceEncoder encoder(tokenizer, masks);
    add_marks(encoder, *tokenizer, specials);
    if (tokenizer->marks() == nullptr) {
      for (const bool pair : {false, true})
        std::ranges::copy(encoder.parts(pair),
                          std::back_inserter(pair ? marks.pair : marks.single));
      around = &marks;
    }
  }
  const bool described = files.contains(kTokenizerJson);
  std::optional<std::string> text = make_description(config.data.tokenizer, where);
  const bool made = text.has_value();
  if (!made && described) text = files[kTokenizerJson];
  const bool more = std::ranges::any_of(
      specials.names, [&](const auto& one) { return one.first >= tokenizer->vocabulary(); });
  const bool marked = text && (more || around != nullptr);
  if (marked) text = with_marks(*text, specials.names, tokenizer->vocabulary(), around, where);
  if (text) files[kTokenizerJson] = *text;
  files[kTokenizerConfig] = settings_of(config, files, specials, marked || made);
  // The settings include the contents of these files, which would override them.
  for (const char* other : {kSpecialTokensMap, "generation_config.json"}) files.erase(other);
  if (text) files.erase("added_tokens.json");
  return files;
}

}  // namespace concertina
