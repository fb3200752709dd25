// A tokenizer as files for Hugging Face's transformers: the original files, plus a tokenizer.json
// if there was none. Invariant: a generated tokenizer.json produces the same tokens as
// make_tokenizer() for each text.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Contents of files, by their names in transformers.
using FileTexts = std::map<std::string, std::string>;

inline constexpr const char* kTokenizerJson = "tokenizer.json";
inline constexpr const char* kTokenizerConfig = "tokenizer_config.json";
inline constexpr const char* kSpecialTokensMap = "special_tokens_map.json";

/// Returns the files of data.tokenizer = `choice` and related files next to them, such as
/// tokenizer_config.json; empty for "bytes". Throws like TokenizerFiles.
FileTexts tokenizer_files(const std::string& choice, const std::string& where);

/// Returns the text of a tokenizer.json for data.tokenizer = `choice`, including "bytes". Returns
/// nothing if there is a complete one, or only a SentencePiece model, which transformers converts.
std::optional<std::string> make_description(const std::string& choice, const std::string& where);

/// Returns the tokenizer.json `description` with the tokens in `names` (by id) that are not below
/// `vocabulary`, and with `around` as marks, whose tokens are in `names`; null keeps the existing
/// marks. Throws Error{bad_input} with `where` if `description` is not a JSON object.
std::string with_marks(const std::string& description,
                       const std::map<std::int32_t, std::string>& names, std::int64_t vocabulary,
                       const Marks* around, const std::string& where);

}  // namespace concertina
