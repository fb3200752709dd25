// Converts other tokenizer files to a tokenizer.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace concertina {

/// Returns an entry of "added_tokens" for a special token.
nlohmann::json added_token(std::int32_t id, const std::string& content);
/// Returns the description of the tokenizer without files, whose tokens are bytes.
nlohmann::json description_of_bytes();
/// Converts a byte-level BPE in GPT-2's format: the files vocab.json (at `where`) and merges.txt.
nlohmann::json description_of_pair(const std::string& vocabulary, const std::string& merges,
                                   bool prefix_space, const std::string& where);
/// Converts BERT's WordPiece file vocab.txt, in which line i is token i. Throws Error{bad_input}
/// naming the line for an empty or duplicate token.
nlohmann::json description_of_lines(const std::string& text, bool lowercase,
                                    const std::string& where);

}  // namespace concertina
