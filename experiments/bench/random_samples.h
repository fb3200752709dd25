// Random samples for any model, as costly as real ones, for benchmarks and checks without data.
#pragma once

#include <vector>

#include "core/model/model_spec.h"
#include "experiments/config/config.h"

namespace concertina {

class RandomSamples final : public BatchSource {
 public:
  /// Provides the fields that `model` reads, with valid tokens, labels and lengths. Every target is
  /// valid except for padding.
  RandomSamples(const RunConfig& config, const ModelSpec& model);

  std::span<const Field> fields() const override { return fields_; }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;
  std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const override;

 private:
  /// The value of element `i` in [0, elements) of `field`.
  std::int32_t value(const Field& field, std::int64_t step, std::int64_t sample,
                     std::int64_t i) const;
  bool has(std::string_view field) const;

  std::int64_t tokens_, vocabulary_, classes_, types_ = 1;
  std::vector<Field> fields_;
};

}  // namespace concertina
