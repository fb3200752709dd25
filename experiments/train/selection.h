// Selects a run's best model, and ends the run if its model stops improving: checkpoint.best and
// run.patience. Invariants: depends only on the metrics of the evaluations, so it is the same on
// all ranks in any layout; each commit stores its state, from which a resumed run continues.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "experiments/config/config.h"
#include "experiments/evaluate/evaluate.h"
#include "experiments/record/best_metric.h"
#include "experiments/run/best_commit.h"

namespace concertina {

class Selection {
 public:
  /// `reads`: the fields that the model reads. Throws Error{bad_input} if evaluations lack the
  /// metric that the config names.
  Selection(const RunConfig& config, std::span<const Field> reads,
            std::shared_ptr<const Dataset> dataset);

  /// Whether anything depends on evaluations.
  bool active() const { return keeps_ || patience_ > 0; }
  /// Whether the best commit is kept.
  bool keeps() const { return keeps_; }
  /// The metric, such as "validation_loss" or "accuracy"; empty if none is used.
  const std::string& metric() const { return metric_.name; }

  /// Records the evaluation after `step`. `due`: whether it is one of the evaluations every
  /// eval.every steps, which patience counts.
  void see(std::int64_t step, const Validation& validation, bool due);
  /// Called if the best model so far could not be committed: the previous best remains.
  void lost();
  /// Called if the best model's commit no longer exists.
  void forget();
  /// Whether the model after `step` is the best so far and must be committed.
  bool wants(std::int64_t step) const { return keeps_ && best_ && best_->step == step; }
  /// Whether run.patience evaluations in a row were not better.
  bool exhausted() const { return patience_ > 0 && waiting_.no_better() >= patience_; }

  /// nullopt before the first evaluation.
  const std::optional<BestCommit>& best() const { return best_; }
  /// The number of evaluations in a row without a better one, and its limit (0: unlimited).
  int no_better() const { return waiting_.no_better(); }
  int patience() const { return patience_; }

  /// The state that a commit stores.
  nlohmann::json progress() const;
  /// Restores the state stored in a commit, unless the commit used another metric.
  void restore(const nlohmann::json& stored);

 private:
  bool keeps_;
  int patience_;
  double least_;
  Metric metric_;
  BestMetric metrics_, waiting_;  // all evaluations; with run.least_improvement
  std::optional<BestCommit> best_, before_;
};

/// Why the run has ended: "3 evaluations without a better accuracy".
std::string ending(const Selection& selection);
/// The text after the metrics of the evaluation after `step`: " (best so far)" or " (best: step 40;
/// 2 of 3 evaluations without a better one)".
std::string standing(const Selection& selection, std::int64_t step);

}  // namespace concertina
