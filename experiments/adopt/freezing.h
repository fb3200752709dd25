// The freeze policy of a run, fed step by step and asked at its decision points.
// Invariants: what it decides follows from figures that are the same bits at every layout, so all
// ranks decide alike; its progress is plain data that a checkpoint keeps.
#pragma once

#include "experiments/adopt/change.h"
#include "parallel/policies/freeze_rules.h"

namespace concertina {

class Freezing final : public ChangePolicy {
 public:
  /// `config`: with the step at which the learning rate ends. Throws bad input where model and
  /// policy contradict each other.
  Freezing(const RunConfig& config, const Job& job);

  /// Takes the figures of the step. At a decision point it wants what the policy says, records it,
  /// also where that changes nothing, and takes a snapshot of the weights if the policy wants one.
  void consider(const RunView& view, Trainer& trainer, Change& change) override;

  const char* name() const override { return "freezing"; }
  nlohmann::json progress() const override;
  void restore(const nlohmann::json& progress, Trainer& trainer,
               const std::string& source) override;

 private:
  void add(const RunView& view, const Trainer& trainer);
  FreezeDecision ask(const RunView& view, Trainer& trainer);
  /// What is left out from now on: as planned, or nothing.
  void skip(Trainer& trainer) const;

  const Job& job_;
  const FreezeRules rules_;
  const std::int64_t every_;
  std::vector<int> layer_of_bucket_;  // -1: of none
  std::vector<double> squares_;       // by layer, of one step
  bool has_reference_ = false;
  FreezeState state_;
  FreezeSums sums_;
};

}  // namespace concertina
