// Special tokens from the files next to a tokenizer: tokenizer_config.json and
// special_tokens_map.json, interpreted as in transformers, and generation_config.json.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Keys of tokenizer_config.json and special_tokens_map.json, in the order in which transformers
/// adds their tokens.
struct SpecialKey {
  SpecialToken token;
  const char* key;
};
inline constexpr SpecialKey kSpecialKeys[] = {
    {SpecialToken::begin, "bos_token"},   {SpecialToken::end, "eos_token"},
    {SpecialToken::unknown, "unk_token"}, {SpecialToken::separate, "sep_token"},
    {SpecialToken::padding, "pad_token"}, {SpecialToken::classify, "cls_token"},
    {SpecialToken::mask, "mask_token"}};

/// A special token by name or, if only its id is specified, by id; neither means none.
struct DeclaredToken {
  std::string name;
  std::optional<std::int32_t> id;
};
using DeclaredTokens = std::map<SpecialToken, DeclaredToken>;

/// Returns the text and path of the file with this name next to a tokenizer; the path is empty if
/// the file does not exist.
using CompanionFile = std::function<std::pair<std::string, std::string>(const char* name)>;

/// Returns tokenizer_config.json updated by special_tokens_map.json as an object; empty if neither
/// exists. Throws Error{bad_input} for a file that is not a JSON object.
nlohmann::json merged_settings(const CompanionFile& file);
/// Returns the special tokens in the files. Throws Error{bad_input} for a name that is not text.
DeclaredTokens declared_tokens(const nlohmann::json& settings, const CompanionFile& file);
/// Adds the files' tokens that are missing from the added_tokens of a tokenizer.json, and returns
/// whether there were any. Throws like declared_tokens().
bool add_declared_tokens(const nlohmann::json& settings, const CompanionFile& file,
                         nlohmann::json& description);

/// Returns the ids of `declared` in a tokenizer, except for tokens that it lacks.
std::map<SpecialToken, std::optional<std::int32_t>> ids_of(const DeclaredTokens& declared,
                                                           const Tokenizer& tokenizer);

}  // namespace concertina
