// A tokenizer.json of what other files of a tokenizer have.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace concertina {

/// An entry of "added_tokens" for a special token.
nlohmann::json added_token(std::int32_t id, const std::string& content);
/// The description where there are no files: a token is a byte.
nlohmann::json description_of_bytes();
/// GPT-2's own two files of a byte-level BPE: vocab.json and merges.txt. `where`: of the first.
nlohmann::json description_of_pair(const std::string& vocabulary, const std::string& merges,
                                   bool prefix_space, const std::string& where);
/// BERT's own file of WordPiece, vocab.txt: line i is the token i. Input errors, with the line: one
/// that is empty, or there twice.
nlohmann::json description_of_lines(const std::string& text, bool lowercase,
                                    const std::string& where);

}  // namespace concertina
