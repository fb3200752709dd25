// The freeze policy of a run. It receives every step and decides at its decision points.
// Invariants: decisions depend only on values that are bit-identical in every layout, so all ranks
// make the same decisions; the state is plain data that is stored in checkpoints.
#pragma once

#include <vector>

#include "experiments/adopt/change.h"
#include "experiments/run/trainer.h"
#include "parallel/policies/freeze_rules.h"

namespace concertina {

/// Takes a snapshot of the trainable weights, on every rank.
void take_reference(Trainer& trainer);

/// Returns |w - r| / |w| of each trainable layer, over all weights w and their snapshot r; 0 for a
/// frozen layer; NaN for all layers if a weight is not finite. `layer_of_bucket` is -1 for a bucket
/// without a layer. The result is bit-identical in every layout: squares are summed in fp64 within
/// the blocks of the canonical grid, and these sums are added as integers. Collective.
std::vector<double> weight_drift(Trainer& trainer, std::span<const int> layer_of_bucket,
                                 std::size_t layers);

class Freezing final : public ChangePolicy {
 public:
  /// `config` must include the step at which the learning-rate schedule ends. Throws
  /// Error{bad_input} if the model and the policy are incompatible.
  Freezing(const RunConfig& config, const Job& job);

  /// Records the metrics of the step. At a decision point, requests and records the policy's
  /// decision, even if empty, and takes a snapshot of the weights if the policy needs one.
  void consider(const RunView& view, Trainer& trainer, Change& change) override;

  const char* name() const override { return "freezing"; }
  nlohmann::json progress() const override;
  void restore(const nlohmann::json& progress, Trainer& trainer,
               const std::string& source) override;

 private:
  void add(const RunView& view, const Trainer& trainer);
  FreezeDecision ask(const RunView& view, Trainer& trainer);
  /// From now on, skips the planned weight gradients if the state enables skipping, or else none.
  void skip(Trainer& trainer) const;

  const Job& job_;
  const FreezeRules rules_;
  const std::int64_t every_;
  std::vector<int> layer_of_bucket_;  // -1: no layer
  std::vector<double> squares_;       // by layer, for one step
  bool has_reference_ = false;
  FreezeState state_;
  FreezeSums sums_;
};

}  // namespace concertina
