// Which of its models a run keeps as the best, and when it ends for want of a better one:
// checkpoint.best and run.patience.
// Invariants: it follows from the figures of the evaluations alone, so all ranks have the same at
// any layout; each commit keeps it, and a resume goes on from there.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "experiments/config/config.h"
#include "experiments/evaluate/evaluate.h"
#include "experiments/record/best_figure.h"
#include "experiments/run/best_commit.h"

namespace concertina {

class Selection {
 public:
  /// `reads`: the fields that the model reads. Throws Error{bad_input} if no evaluation has the
  /// figure that the config names.
  Selection(const RunConfig& config, std::span<const Field> reads,
            std::shared_ptr<const Dataset> dataset);

  /// Whether anything goes by evaluations.
  bool active() const { return keeps_ || patience_ > 0; }
  /// Whether the best commit is kept.
  bool keeps() const { return keeps_; }
  /// "validation_loss", "accuracy"; empty where nothing goes by it.
  const std::string& figure() const { return figure_.name; }

  /// Takes the evaluation after `step`. `due`: one of those every eval.every steps, which patience
  /// counts.
  void see(std::int64_t step, const Validation& validation, bool due);
  /// No commit could be made of the best model so far: the one before it is still the best.
  void lost();
  /// The commit of the best model is not there any more.
  void forget();
  /// Whether the model after `step` is the best so far, and to be committed.
  bool wants(std::int64_t step) const { return keeps_ && best_ && best_->step == step; }
  /// Whether no evaluation was better for run.patience evaluations.
  bool exhausted() const { return patience_ > 0 && waiting_.no_better() >= patience_; }

  /// Nothing before the first evaluation.
  const std::optional<BestCommit>& best() const { return best_; }
  /// Evaluations in a row without a better one, and after how many of them the run ends; 0: never.
  int no_better() const { return waiting_.no_better(); }
  int patience() const { return patience_; }

  /// What a commit keeps.
  nlohmann::json progress() const;
  /// Goes on from what a commit kept, unless that was by another figure.
  void restore(const nlohmann::json& stored);

 private:
  bool keeps_;
  int patience_;
  double least_;
  Metric figure_;
  BestFigure figures_, waiting_;  // all evaluations; with run.least_improvement
  std::optional<BestCommit> best_, before_;
};

/// "3 evaluations without a better accuracy": why the run has ended.
std::string ending(const Selection& selection);
/// " (best so far)", " (best: step 40; 2 of 3 evaluations without a better one)": after the figures
/// of the evaluation after `step`.
std::string standing(const Selection& selection, std::int64_t step);

}  // namespace concertina
