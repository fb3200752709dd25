// Uniform random tokens: the same work as any text, for benches.
#pragma once

#include "core/batch_source.h"

namespace concertina {

class RandomTokens final : public BatchSource {
 public:
  RandomTokens(std::int64_t tokens, int vocabulary) : tokens_(tokens), vocabulary_(vocabulary) {}
  void load(std::int64_t step, std::int64_t first, std::int64_t count, View tokens,
            View targets) override;
  std::int64_t valid_targets(std::int64_t /*step*/, std::int64_t samples) const override {
    return samples * tokens_;
  }
  std::int64_t tokens_per_sample() const override { return tokens_; }

 private:
  std::int64_t tokens_;
  int vocabulary_;
};

}  // namespace concertina
