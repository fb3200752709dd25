#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "io/tokenizers/added_tokens.h"
#include "io/tokenizers/stages.h"

namespace concertina {

/// What is known before the model is read. The model never produces `added` tokens.
struct ModelContext {
  bool bytes = false;  // WordSteps::bytes
  const AddedTokens& added;
  const std::string& where;
};

/// Reads the "model" in a tokenizer.json, whose type is `type`. Throws Error{bad_input} with
/// context.where for an unsupported type or rule, or a damaged table.
WordModel read_word_model(const nlohmann::json& model, const std::string& type,
                          const ModelContext& context);

}  // namespace concertina
