#include "experiments/hugging_face/exported_tokenizer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "experiments/run/planning.h"
#include "io/datasets/sentences.h"
#include "io/strict_json.h"
#include "models/task.h"

namespace concertina {
namespace {

using SettingsJson = nlohmann::json;

struct SpecialName {
  SpecialToken token;
  const char* key;   // of tokenizer_config.json
  const char* name;  // of one that comes after a vocabulary without it
};
constexpr std::array kSpecials{SpecialName{SpecialToken::unknown, "unk_token", ""},
                               SpecialName{SpecialToken::begin, "bos_token", ""},
                               SpecialName{SpecialToken::end, "eos_token", ""},
                               SpecialName{SpecialToken::classify, "cls_token", "[CLS]"},
                               SpecialName{SpecialToken::separate, "sep_token", "[SEP]"},
                               SpecialName{SpecialToken::padding, "pad_token", "[PAD]"},
                               SpecialName{SpecialToken::mask, "mask_token", "[MASK]"}};

bool reads(const RunConfig& config, const std::string& field) {
  return std::ranges::any_of(fields_of(model_of(config)->spec()),
                             [&](const Field& one) { return one.name == field; });
}

/// Special tokens by role, and what all marks are called.
struct Specials {
  std::map<SpecialToken, std::int32_t> ids;
  std::map<std::int32_t, std::string> names;
};

/// The tokenizer's own.
Specials own_specials(const Tokenizer& tokenizer) {
  Specials all;
  for (const SpecialName& special : kSpecials)
    if (const auto id = tokenizer.special(special.token)) {
      all.ids[special.token] = *id;
      all.names[*id] = tokenizer.decode({&*id, 1});
    }
  return all;
}

/// Adds what the run puts around texts. A token that texts have too stands in no role: transformers
/// would look for it in texts before all others.
void add_marks(const SentenceEncoder& encoder, const Tokenizer& tokenizer, bool masks,
               Specials& all) {
  const std::array roles{std::pair{SpecialToken::classify, encoder.classify()},
                         std::pair{SpecialToken::separate, encoder.separator()},
                         std::pair{SpecialToken::padding, encoder.padding()},
                         std::pair{SpecialToken::mask, encoder.mask()}};
  for (const auto& [role, id] : roles) {
    const bool more = id >= tokenizer.vocabulary();
    if (!more && !all.names.contains(id)) continue;
    if (role == SpecialToken::mask && !masks) continue;
    const auto* const special = std::ranges::find(kSpecials, role, &SpecialName::token);
    all.ids.emplace(role, id);
    all.names.emplace(id, special->name);
  }
  for (const Marks::Part& part : encoder.parts(/*pair=*/true))
    if (part.text < 0 && !all.names.contains(part.token))
      all.names[part.token] = tokenizer.decode({&part.token, 1});
}

/// What tokenizer_config.json says besides what a model came with. `made`: tokenizer.json is not
/// what the tokenizer's own class would make of its files.
std::string settings_of(const RunConfig& config, const FileTexts& files, const Specials& specials,
                        bool made) {
  const auto kept = files.find(kTokenizerConfig);
  SettingsJson settings = kept == files.end() ? SettingsJson::object()
                                              : parse_strict_object(kept->second, kTokenizerConfig);
  const auto set_if_none = [&](const char* key, const SettingsJson& value) {
    if (!settings.contains(key) || settings[key].is_null()) settings[key] = value;
  };
  const char* const general =
      files.contains(kTokenizerJson) ? "PreTrainedTokenizerFast" : "LlamaTokenizer";
  set_if_none("tokenizer_class", general);
  if (made) settings["tokenizer_class"] = general;
  settings["model_max_length"] = config.model.context;
  set_if_none("padding_side", is_causal(config) ? "left" : "right");
  set_if_none("clean_up_tokenization_spaces", false);
  SettingsJson inputs = {"input_ids", "attention_mask"};
  if (reads(config, types_field(1).name)) inputs.push_back("token_type_ids");
  settings["model_input_names"] = inputs;
  for (const SpecialName& special : kSpecials)
    if (const auto id = specials.ids.find(special.token); id != specials.ids.end())
      if (const std::string& name = specials.names.at(id->second); !name.empty())
        set_if_none(special.key, name);
  return settings.dump(2) + "\n";
}

}  // namespace

bool is_causal(const RunConfig& config) {
  return &task_of(config.model.family, config.model.task) == &find_task("causal-lm");
}

FileTexts exported_tokenizer(const RunConfig& config) {
  if (!reads(config, "tokens")) return {};
  const std::string where = config.where("data.tokenizer");
  const auto tokenizer = tokenizer_of(config);
  FileTexts files = tokenizer_files(config.data.tokenizer, where);
  Specials specials = own_specials(*tokenizer);
  const Marks* around = nullptr;
  Marks marks;
  if (!is_causal(config)) {
    const bool masks = task_of(config.model.family, config.model.task).masks;
    const SentenceEncoder encoder(tokenizer, masks);
    add_marks(encoder, *tokenizer, masks, specials);
    if (tokenizer->marks() == nullptr) {
      for (const bool pair : {false, true})
        std::ranges::copy(encoder.parts(pair),
                          std::back_inserter(pair ? marks.pair : marks.single));
      around = &marks;
    }
  }
  const bool described = files.contains(kTokenizerJson);
  std::optional<std::string> text =
      described ? files[kTokenizerJson] : make_description(files, where);
  const bool more = std::ranges::any_of(
      specials.names, [&](const auto& one) { return one.first >= tokenizer->vocabulary(); });
  const bool marked = text && (more || around != nullptr);
  if (marked) text = with_marks(*text, specials.names, tokenizer->vocabulary(), around, where);
  if (text) files[kTokenizerJson] = *text;
  files[kTokenizerConfig] = settings_of(config, files, specials, marked || (text && !described));
  return files;
}

}  // namespace concertina
