// Text from the model, at any layout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/run/trainer.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// The tokens of `prompt`, at least one. Input errors: a model that predicts no next tokens or has
/// fewer of them than the tokenizer; a prompt that is empty or that the tokenizer cannot read.
std::vector<std::int32_t> prompt_tokens(const ModelSpec& model, const Tokenizer& tokenizer,
                                        const std::string& prompt);

/// `options.tokens` tokens after `options.prompt` (not repeated in the result), each sampled from
/// softmax(logits / temperature), the likeliest if temperature is 0. Random numbers are of
/// (seed, token), so every layout says the same. Each token costs one forward pass of a whole
/// microbatch: meant for a look at the model, not for serving. Collective; all ranks get the text.
/// `stop`, asked now and then on all ranks with the same answer, ends it early.
std::string generate(Trainer& trainer, const Tokenizer& tokenizer, const GenerateSection& options,
                     std::int64_t seed, const std::function<bool()>& stop = {});

}  // namespace concertina
