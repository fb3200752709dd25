// Special tokens, as the files beside a tokenizer say them: tokenizer_config.json and
// special_tokens_map.json, as transformers reads them, and generation_config.json.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// The keys of tokenizer_config.json and of special_tokens_map.json, in the order in which
/// transformers adds their tokens.
struct SpecialKey {
  SpecialToken token;
  const char* key;
};
inline constexpr SpecialKey kSpecialKeys[] = {
    {SpecialToken::begin, "bos_token"},   {SpecialToken::end, "eos_token"},
    {SpecialToken::unknown, "unk_token"}, {SpecialToken::separate, "sep_token"},
    {SpecialToken::padding, "pad_token"}, {SpecialToken::classify, "cls_token"},
    {SpecialToken::mask, "mask_token"}};

/// A special token by its name, or where only its number is said, by that; neither: there is none.
struct SaidToken {
  std::string name;
  std::optional<std::int32_t> id;
};
using SaidTokens = std::map<SpecialToken, SaidToken>;

/// Returns the text of the file of a name beside a tokenizer, and its path; no path: it is not
/// there.
using CompanionFile = std::function<std::pair<std::string, std::string>(const char* name)>;

/// tokenizer_config.json with what special_tokens_map.json says instead: an object, empty where
/// there is neither. Input error: a file that is no JSON object.
nlohmann::json merged_settings(const CompanionFile& file);
/// Special tokens that the files say. Input error: a name that is no text.
SaidTokens said_tokens(const nlohmann::json& settings, const CompanionFile& file);
/// Adds to a tokenizer.json the tokens that the files say and that it does not have as added ones;
/// whether there were any. Input errors as above.
bool add_said_tokens(const nlohmann::json& settings, const CompanionFile& file,
                     nlohmann::json& description);

/// The ids of `said` in a tokenizer; one that it does not have is left out.
std::map<SpecialToken, std::optional<std::int32_t>> ids_of(const SaidTokens& said,
                                                           const Tokenizer& tokenizer);

}  // namespace concertina
