#include "experiments/bench/random_tokens.h"

#include "core/rng.h"

namespace concertina {

void RandomTokens::load(std::int64_t step, std::int64_t first, std::int64_t count,
                        std::span<const View> views) {
  const View tokens = views[0], targets = views[1];
  const Rng rng(1, Purpose::sample);
  const auto token = [&](std::int64_t sample, std::int64_t i) {
    return static_cast<std::int32_t>(rng.words(static_cast<std::uint32_t>(step),
                                               static_cast<std::uint32_t>(sample), 0,
                                               static_cast<std::uint32_t>(i))[0] %
                                     static_cast<std::uint32_t>(vocabulary_));
  };
  for (std::int64_t s = 0; s < count; ++s)
    for (std::int64_t i = 0; i < tokens_; ++i) {
      if (!tokens.empty()) tokens.i32()[s * tokens_ + i] = token(first + s, i);
      if (!targets.empty()) targets.i32()[s * tokens_ + i] = token(first + s, i + 1);
    }
}

}  // namespace concertina
