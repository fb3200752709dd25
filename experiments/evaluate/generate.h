// Continues texts with the model, in any layout.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/evaluate/decoder.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// Returns the tokens of `prompt`, at least one. Throws Error{bad_input} if the model does not
/// predict next tokens or has fewer tokens than the tokenizer, or if the prompt is empty or cannot
/// be encoded.
Tokens prompt_tokens(const ModelSpec& model, const Tokenizer& tokenizer, const std::string& prompt);

struct Prompt {
  std::string text;
  std::int64_t seed = 0;
};

/// The continuation of a prompt.
struct Continuation {
  std::string text;                       // without the prompt, and without a stop string
  std::vector<double> log_probabilities;  // by token
  std::string_view end = "length";        // why it ends; or "stop", "end of text", "interrupted"
};

/// Receives the continuation of prompt `index`, in order, when all texts of its batch are complete.
using SeeContinuation = std::function<void(std::size_t index, const Continuation& text)>;

/// Continues each prompt by up to `options.tokens` tokens. The random numbers of a prompt depend on
/// its seed alone. The pipeline that starts a step computes all texts, generate.batch at once.
/// Collective; all ranks return the result. `stop` is called repeatedly, and must return the same
/// value on all ranks; true ends the generation early. Throws Error{bad_input} like
/// prompt_tokens().
std::vector<Continuation> generate(const DecodedModel& model, const ModelSpec& spec,
                                   Backend& backend, const Tokenizer& tokenizer,
                                   std::span<const Prompt> prompts,
                                   const std::function<bool()>& stop = {},
                                   const SeeContinuation& see = {});

}  // namespace concertina
