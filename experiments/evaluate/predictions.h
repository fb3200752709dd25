// What a task counts of held-out samples beside the loss, from the logits of each.
// Invariants: numbers of samples are summed in order of samples, or counted, so figures are the
// same bits at every layout; all ranks have them.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/model/batch.h"
#include "experiments/config/config.h"
#include "experiments/evaluate/class_counts.h"
#include "io/datasets/dataset.h"

namespace concertina {

class QuestionAnswers;

class Predictions {
 public:
  virtual ~Predictions() = default;
  /// Numbers that answer() writes per sample.
  virtual std::size_t size() const = 0;
  /// Makes numbers of the logits of one sample, which are on the host: of one row, or of all.
  virtual void answer(std::uint64_t sample, std::span<const float> logits,
                      std::span<double> numbers) const = 0;
  /// `numbers`: those of samples 0, 1, ..., one after the other; of none, all figures without a
  /// value.
  virtual std::vector<Metric> metrics(std::span<const double> numbers) const = 0;
  /// How often which class was taken for which; empty of tasks without classes.
  virtual Confusion confusion(std::span<const double> /*numbers*/) const { return {}; }
};

/// The place of the largest logit: of equals, the first.
template <class T>
std::size_t likeliest(std::span<const T> logits) {
  return static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
}

/// The kind of a model's predictions follows from the targets that it reads: classes from a label,
/// scores, classes of words from tags, spans from a start and an end. Null for any other: tokens
/// are scored by their loss alone.
std::unique_ptr<Predictions> make_predictions(const RunConfig& config, std::span<const Field> reads,
                                              std::shared_ptr<const Dataset> dataset, Split split);

/// The kinds.
std::unique_ptr<Predictions> class_predictions(std::shared_ptr<const Dataset> dataset, Split split,
                                               std::size_t classes);
/// `labels`: what is told is which classes a sample is of.
std::unique_ptr<Predictions> score_predictions(std::shared_ptr<const Dataset> dataset, Split split,
                                               std::size_t scores, bool labels);
std::unique_ptr<Predictions> tag_predictions(std::shared_ptr<const Dataset> dataset, Split split,
                                             std::size_t classes);
std::unique_ptr<Predictions> span_predictions(std::shared_ptr<const Dataset> dataset,
                                              const QuestionAnswers& questions, Split split);

}  // namespace concertina
