#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "io/tokenizers/added_tokens.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/stages.h"
#include "io/tokenizers/word_pieces.h"

namespace concertina {

/// What is read before the model is: a token that no text becomes by the model needs no bytes.
struct ModelContext {
  bool bytes = false;  // of WordSteps
  const AddedTokens& added;
  const std::string& where;
};

/// The "model" of a tokenizer.json, of `type`. Input errors, with context.where: a type or a rule
/// that is not supported; a damaged table.
WordModel read_word_model(const nlohmann::json& model, const std::string& type,
                          const ModelContext& context);

/// Tokens of a vocabulary in GPT-2's alphabet, as bytes, but for those that are added ones. Input
/// error: another one.
void read_byte_tokens(const TokenNames& vocabulary, const AddedTokens& added, BytePairTable& table,
                      const std::string& where);
/// Adds "a b" as a merge, of bytes if table.bytes. Input error: it is no pair of tokens.
void add_merge_line(std::string_view line, BytePairTable& table, const std::string& where);

WordModel byte_pair_model(const BytePairTable& table, TokenNames names, const std::string& where);
WordModel word_piece_model(WordPieceTable table, const std::string& where);

}  // namespace concertina
