// Evaluates the model on held-out data, in any layout.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "experiments/evaluate/predictions.h"
#include "experiments/run/trainer.h"
#include "io/datasets/dataset.h"
#include "io/datasets/source.h"

namespace concertina {

/// Held-out tokens in each batch that `eval.batches` and `eval.periodic_batches` count, independent
/// of batch.global and model.context.
inline constexpr std::int64_t kEvaluationBatch = 4096;

/// Batches that `train` evaluates if eval.batches is -1; a few seconds for a small model.
inline constexpr std::int64_t kDefaultBatches = 16;
/// HeldOut::batches for `train`: at its end, and periodically before that.
std::int64_t final_batches(const EvalSection& eval);
std::int64_t periodic_batches(const EvalSection& eval);

/// The samples to evaluate: the first `batches` x kEvaluationBatch targets of a split, or of each
/// source of a mixture; 0 means all.
struct HeldOut {
  Split split = Split::validation;  // or test
  std::int64_t batches = 0;
  /// Called during evaluation with the number of finished targets, the total, and elapsed seconds.
  std::function<void(std::int64_t done, std::int64_t of, double seconds)> progress{};
};

/// Identifies what an evaluation measures. Only evaluations with equal measures are comparable.
struct Measure {
  SplitContent data{};
  std::string unit{};  // the task, with the tokenizer if targets are tokens
};

struct Validation {
  double loss = 0;                   // mean over the targets in nats
  bool tokens = false;               // targets are tokens, so that e^loss is a perplexity
  std::int64_t targets = 0, of = 0;  // numbers of targets: scored, and in the split
  double seconds = 0;                // duration
  std::vector<Metric> metrics{};     // metrics of the task besides the loss
  Confusion confusion{};             // for classification
  std::int64_t samples = 0;          // evaluated
  Measure measure{};                 // on rank 0
};

/// Reads the whole split, calling `progress` repeatedly.
Measure measure_of(const RunConfig& config, const Dataset& dataset, const Tokenizer& tokenizer,
                   Split split, const std::function<void()>& progress);
/// Keys: data, data_bytes, measure, and bits_per_byte if all of a text was evaluated. Empty if the
/// evaluation has no measure.
nlohmann::ordered_json measure_json(const Validation& validation);

/// Receives the logits for one row or for all rows of a held-out sample, on the rank that has them.
using SampleLogits = std::function<void(std::uint64_t sample, std::span<const float> logits)>;

/// "nats per target", or "per target" for squared errors.
std::string_view loss_unit(const RunConfig& config);
/// "440,440 targets", "32,768 of 440,440 targets".
std::string text_share(const Validation& validation);
/// ", accuracy 96.43%, matthews_correlation 0.9283": all metrics; empty if there are none.
std::string metrics_text(const Validation& validation);

/// Keys: classes (names, if any) and confusion (by label, then prediction). Empty if there are no
/// classes, or more than 100.
nlohmann::ordered_json confusion_json(const Validation& validation,
                                      std::span<const std::string> names);
/// Formats the confusion matrix as a table, for at most 10 classes.
std::string confusion_text(const Validation& validation, std::span<const std::string> names);

/// Evaluates `held_out`, a part of `dataset`. Collective. The result is bit-identical in all
/// layouts, since losses are summed in microbatch order. Without targets, the loss is 0. `stop` is
/// called after each batch, and must return the same value on all ranks; true ends the evaluation
/// with an unusable result. For a mixture, the loss is the mean over the targets of all sources,
/// and the loss of each source is a metric, loss_<source>.
Validation evaluate(Trainer& trainer, std::shared_ptr<const Dataset> dataset,
                    const HeldOut& held_out, const std::function<bool()>& stop = {},
                    const SampleLogits& see = {});

/// Throws an error that names `step` if the loss is not finite.
void require_finite(const Validation& validation, std::int64_t step);

}  // namespace concertina
