// The freeze policy of a run, fed step by step and asked at its decision points.
// Invariants: what it decides follows from figures that are the same bits at every layout, so all
// ranks decide alike; its progress is plain data that a checkpoint keeps.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "experiments/run/trainer.h"
#include "parallel/policies/freeze_rules.h"

namespace concertina {

/// What a policy wants from the next step on, and why.
struct FreezeChange {
  int layers = 0, units = 0;  // that are frozen then, from the front
  FreezeDecision decision;
};

class Freezing {
 public:
  /// `config`: with the step at which the learning rate ends. Throws bad input where
  /// model and policy contradict each other.
  Freezing(const RunConfig& config, const Job& job);

  /// Takes the figures of step `step`. `epochs_before`, `epochs`: whole epochs done before and
  /// after it. At a decision point it returns what the policy wants, also where that changes
  /// nothing, and has taken a snapshot of the weights if the policy wants one. Collective.
  std::optional<FreezeChange> after_step(std::int64_t step, const StepResult& result,
                                         Trainer& trainer, std::int64_t epochs_before,
                                         std::int64_t epochs);

  int frozen_layers() const { return frozen_; }
  /// Everything that later decisions depend on.
  nlohmann::json progress() const;
  /// The inverse of progress(); null: at the start of the run. Throws a failure that names `source`
  /// if it is of another form.
  void restore(const nlohmann::json& progress, const std::string& source);

 private:
  const Job& job_;
  const FreezeRules rules_;
  const std::int64_t every_;
  std::vector<int> layer_of_bucket_;  // -1: of none
  std::vector<double> squares_;       // by layer, of one step
  bool has_reference_ = false;
  int frozen_ = 0;
  FreezeState state_;
  FreezeSums sums_;
};

}  // namespace concertina
