#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "io/tokenizers/added_tokens.h"
#include "io/tokenizers/stages.h"

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

}  // namespace concertina
