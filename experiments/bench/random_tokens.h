// Uniform random tokens: the same work as any text, for benches.
#pragma once

#include <vector>

#include "core/batch.h"

namespace concertina {

class RandomTokens final : public BatchSource {
 public:
  RandomTokens(std::int64_t tokens, int vocabulary)
      : tokens_(tokens), vocabulary_(vocabulary), fields_(text_fields(tokens)) {}
  std::span<const Field> fields() const override { return fields_; }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;
  std::int64_t valid_targets(std::int64_t /*step*/, std::int64_t samples) const override {
    return samples * tokens_;
  }

 private:
  std::int64_t tokens_;
  int vocabulary_;
  const std::vector<Field> fields_;
};

}  // namespace concertina
