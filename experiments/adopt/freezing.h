// The freeze policy of a run, fed step by step and asked at its decision points.
// Invariants: what it decides follows from figures that are the same bits at every layout, so all
// ranks decide alike; its progress is plain data that a checkpoint keeps.
#pragma once

#include <vector>

#include "experiments/adopt/change.h"
#include "experiments/run/trainer.h"
#include "parallel/policies/freeze_rules.h"

namespace concertina {

/// Takes the snapshot of the weights that train, on every rank.
void take_reference(Trainer& trainer);

/// Returns |w - r| / |w| of each layer that trains, over all weights w and their snapshot r; 0 of a
/// frozen layer; NaN of all layers if a weight is not finite. `layer_of_bucket`: -1 for buckets of
/// none. The same bits at every layout: squares are summed in fp64 within the blocks of the
/// canonical grid, and these sums as integers. Collective.
std::vector<double> weight_drift(Trainer& trainer, std::span<const int> layer_of_bucket,
                                 std::size_t layers);

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
  /// Leaves out weight gradients from now on: as planned, or none.
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
