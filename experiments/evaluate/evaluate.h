// Loss on what is held out of training, at any layout.
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

/// Held-out tokens that `eval.batches` and `eval.periodic_batches` count by: the same text for runs
/// of any batch.global and model.context.
inline constexpr std::int64_t kEvaluationBatch = 4096;

/// The same of `train` where eval.batches is -1: what a small model takes some seconds for.
inline constexpr std::int64_t kUsualBatches = 16;
/// What `train` evaluates on, as of HeldOut::batches: at its end, and before that.
std::int64_t final_batches(const EvalSection& eval);
std::int64_t periodic_batches(const EvalSection& eval);

/// The samples to evaluate: the first `batches` x kEvaluationBatch targets of a split; 0: all of
/// it; of a mixture, of each source.
struct HeldOut {
  Split split = Split::validation;  // or test
  std::int64_t batches = 0;
  /// Is called while that goes on, with the targets that are done, all of them, and seconds so far.
  std::function<void(std::int64_t done, std::int64_t of, double seconds)> progress{};
};

/// What the figures of an evaluation are of: others are compared with them only where this is the
/// same.
struct Measure {
  SplitContent data{};
  std::string unit{};  // the task; where targets are tokens, the tokenizer too
};

struct Validation {
  double loss = 0;                   // mean over the targets, nats
  bool tokens = false;               // are targets: e^loss is a perplexity then, and only then
  std::int64_t targets = 0, of = 0;  // scored, and all that the split has
  double seconds = 0;                // that it took
  std::vector<Metric> metrics{};     // what the task counts beside the loss
  Confusion confusion{};             // of classes
  std::int64_t samples = 0;          // that were seen
  Measure measure{};                 // on rank 0 of a run
};

/// Reads the split whole. `progress` is called now and then.
Measure measure_of(const RunConfig& config, const Dataset& dataset, const Tokenizer& tokenizer,
                   Split split, const std::function<void()>& progress);
/// Keys: data, data_bytes, measure; bits_per_byte, where all of a text was evaluated. None of an
/// evaluation that does not say what it is of.
nlohmann::ordered_json measure_json(const Validation& validation);

/// Gets the logits of one held-out sample on the rank that has them: of one row, or of all its
/// rows.
using SampleLogits = std::function<void(std::uint64_t sample, std::span<const float> logits)>;

/// "nats per target"; of squared errors, which are none, "per target".
std::string_view loss_unit(const RunConfig& config);
/// "440,440 targets", "32,768 of 440,440 targets".
std::string text_share(const Validation& validation);
/// ", accuracy 96.43%, matthews_correlation 0.9283": all metrics; empty where there are none.
std::string metrics_text(const Validation& validation);

/// Keys: classes (names, where there are some) and confusion (by label, then prediction); none
/// without classes, or of more than 100.
nlohmann::ordered_json confusion_json(const Validation& validation,
                                      std::span<const std::string> names);
/// The same as a table, of at most 10 classes.
std::string confusion_text(const Validation& validation, std::span<const std::string> names);

/// The loss over `held_out`, a part of `dataset`. Collective; the same bits at any layout: losses
/// are summed in microbatch order. No targets: loss 0. `stop`, asked after each batch on all ranks
/// with the same answer, ends it early: the result is of no use then. Of a mixture the loss is a
/// mean over the targets of all sources, and that of each is a metric, loss_<source>.
Validation evaluate(Trainer& trainer, std::shared_ptr<const Dataset> dataset,
                    const HeldOut& held_out, const std::function<bool()>& stop = {},
                    const SampleLogits& see = {});

/// Throws a failure that names `step` if the loss is no number.
void require_finite(const Validation& validation, std::int64_t step);

}  // namespace concertina
