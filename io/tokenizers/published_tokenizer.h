// A tokenizer as files that Hugging Face's transformers reads: those that it came as, and a
// tokenizer.json of those that came without one.
// Invariant: a tokenizer.json that is made here gives each text the tokens that make_tokenizer()
// gives it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Contents of files, by the names that transformers has for them.
using FileTexts = std::map<std::string, std::string>;

inline constexpr const char* kTokenizerJson = "tokenizer.json";
inline constexpr const char* kTokenizerConfig = "tokenizer_config.json";
inline constexpr const char* kSpecialTokensMap = "special_tokens_map.json";

/// The files that data.tokenizer = `choice` means, and those beside them that say more about it,
/// such as tokenizer_config.json; none of "bytes". Input errors as of TokenizerFiles.
FileTexts tokenizer_files(const std::string& choice, const std::string& where);

/// The text of a tokenizer.json for data.tokenizer = `choice`, also of bytes. Nothing where there
/// is one that says all of it, and of a SentencePiece model alone, which transformers converts
/// itself.
std::optional<std::string> make_description(const std::string& choice, const std::string& where);

/// A tokenizer.json that also has those of `names`, tokens by id, that are not below `vocabulary`,
/// and that puts `around` around texts, whose tokens have `names`; null: what it says itself. Input
/// error, with `where`: it is no JSON object.
std::string with_marks(const std::string& description,
                       const std::map<std::int32_t, std::string>& names, std::int64_t vocabulary,
                       const Marks* around, const std::string& where);

}  // namespace concertina
