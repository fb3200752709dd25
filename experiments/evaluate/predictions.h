// What a model says of held-out samples beside their loss, and how often that is right.
// Invariant: a figure is made of whole answers in the order of the samples, so it is the same at
// every layout.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "io/datasets/dataset.h"

namespace concertina {

/// A figure such as "accuracy", in [0, 1].
struct Metric {
  std::string name;
  double value = 0;
};

class Predictions {
 public:
  virtual ~Predictions() = default;
  /// Numbers that answer() writes per sample.
  virtual std::size_t size() const = 0;
  /// Makes numbers of the logits of one sample, which are on the host: of one row, or of all.
  virtual void answer(std::uint64_t sample, std::span<const float> logits,
                      std::span<double> numbers) const = 0;
  /// `numbers`: those of samples 0, 1, ..., one after the other.
  virtual std::vector<Metric> metrics(std::span<const double> numbers) const = 0;
};

/// What a model predicts follows from the targets that it reads: classes from a label, spans from a
/// start and an end. Null for any other: tokens are scored by their loss alone.
std::unique_ptr<Predictions> make_predictions(std::span<const Field> reads,
                                              std::shared_ptr<const Dataset> dataset, Split split);

}  // namespace concertina
