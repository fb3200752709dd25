// Chooses the next token of a text from the logits.
#pragma once

#include <cstdint>
#include <span>

#include "experiments/config/config.h"

namespace concertina {

struct SampledToken {
  std::int32_t token = 0;
  double log_probability = 0;  // of the model itself: at temperature 1, without the options below
};

/// Applies the options in the order of Hugging Face's transformers: repetition penalty (to tokens
/// of `text`), temperature, top_k, top_p, min_p. `uniform` is in [0, 1). Throws Error{failure} if a
/// logit is not finite.
SampledToken sample_token(std::span<const float> logits, std::span<const std::int32_t> text,
                          const GenerateSection& options, double uniform);

}  // namespace concertina
