// Generates text with the model, in any layout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/run/trainer.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Returns the tokens of `prompt`, at least one. Throws Error{bad_input} if the model does not
/// predict next tokens or has fewer tokens than the tokenizer, or if the prompt is empty or cannot
/// be encoded.
std::vector<std::int32_t> prompt_tokens(const ModelSpec& model, const Tokenizer& tokenizer,
                                        const std::string& prompt);

/// Generates `options.tokens` tokens after `options.prompt`, which the result does not repeat. Each
/// token is sampled from softmax(logits / temperature), or is the most likely token if temperature
/// is 0. Random numbers depend on (seed, token), so the result does not depend on the layout. Each
/// token costs a forward pass of a whole microbatch, so use it for inspection, not for serving.
/// Collective; all ranks return the text. `stop` is called repeatedly, and must return the same
/// value on all ranks; true ends the generation early.
std::string generate(Trainer& trainer, const Tokenizer& tokenizer, const GenerateSection& options,
                     std::int64_t seed, const std::function<bool()>& stop = {});

}  // namespace concertina
