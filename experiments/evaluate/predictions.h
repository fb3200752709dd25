// Computes a task's metrics besides the loss from the logits of held-out samples. Invariants:
// counts are summed, and other numbers are summed in sample order, so metrics are bit-identical in
// all layouts and on all ranks.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/model/batch.h"
#include "experiments/config/config.h"
#include "experiments/evaluate/metrics.h"
#include "io/datasets/dataset.h"

namespace concertina {

class Predictions {
 public:
  virtual ~Predictions() = default;
  /// Number of values that answer() writes per sample.
  virtual std::size_t size() const = 0;
  /// Reduces the logits of one sample, for one row or for all its rows, to numbers. The logits are
  /// in host memory.
  virtual void answer(std::uint64_t sample, std::span<const float> logits,
                      std::span<double> numbers) const = 0;
  /// `numbers` contains the numbers of samples 0, 1, ... in sequence. If it is empty, returns all
  /// metrics without values.
  virtual std::vector<Metric> metrics(std::span<const double> numbers) const = 0;
  /// The confusion matrix; empty for tasks without classes.
  virtual Confusion confusion(std::span<const double> /*numbers*/) const { return {}; }
};

/// The index of the largest logit; the first index if several logits are equal.
template <class T>
std::size_t likeliest(std::span<const T> logits) {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}

/// Creates the predictions for the targets that the model reads: classes for a label, scores for
/// scores, classes of words for tags, spans for a start and an end. Returns null for next tokens,
/// which are scored only by their loss.
std::unique_ptr<Predictions> make_predictions(const RunConfig& config, std::span<const Field> reads,
                                              std::shared_ptr<const Dataset> dataset, Split split);

}  // namespace concertina
