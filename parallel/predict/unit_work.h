// The work and time of a unit on a machine that is known by figures alone, on one device of a
// tensor-parallel group, as this program or another does it: all from its own UnitCost.
// Products run at the rate of large ones, what is bound by memory at the memory's rate, sums over
// the group at the rate within a host, and each pass has a constant for launching. So the rate
// depends on microbatch, width and tp. Invariant: pure; what the machine does not say takes no
// time.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "parallel/predict/plan_candidate.h"

namespace concertina {

/// `cost` as `software` does and keeps it; `element`: bytes of one of an activation.
UnitCost cost_by(const Software& software, const UnitCost& cost, double element);
/// The part of one device of a group of `tp`, of a microbatch of `samples` times as many samples.
UnitCost share_of(const UnitCost& cost, int tp, int samples);
/// Elements of a parameter on one device of a group of `tp`.
double share_of(const ParameterSpec& parameter, int tp);

/// Seconds of a microbatch. W adds `sums` bytes of gradients to those before it.
UnitSeconds seconds_on(const MachineModel& machine, const UnitCost& cost, double sums);
/// The same of each unit of `model`, as far as it trains in `costs`.
std::vector<UnitSeconds> seconds_on(const MachineModel& machine, const ModelSpec& model,
                                    const std::vector<UnitCost>& costs);

/// One unit of one microbatch on one device; sums of these, of many.
struct UnitWork {
  double forward = 0, input = 0, weight = 0;  // seconds
  double again = 0;                           // of `input`: what is computed again
  double group = 0;                           // of all: the sums over the group
  double again_flops = 0;                     // of all devices
  double parameters = 0;                      // elements that no other unit shares
  double saved = 0, grads = 0;                // bytes, F to W and I to W, with those at its input
  double total() const { return forward + input + weight; }
  UnitWork& operator+=(const UnitWork& other);
};

/// A tensor that several units use: its elements on one device, and the units.
struct SharedTensor {
  double elements = 0;
  std::vector<int> uses;
};

/// All units of a model, for microbatches and groups of one size.
struct ModelWork {
  std::vector<UnitWork> before{{}};  // [u]: the sum over units [0, u)
  std::vector<double> input;         // bytes that each unit keeps at its input
  std::vector<double> scratch;       // bytes that each one's backward pass takes while it runs
  std::vector<double> flops;         // that cuts balance, of one sample
  std::vector<SharedTensor> shared;
  UnitWork sum(UnitRange units) const;
};

/// Makes the work of each kind of candidates once.
class WorkTable {
 public:
  /// `problem` outlives it.
  explicit WorkTable(const PlanProblem& problem) : problem_(problem) {}
  const ModelWork& of(const PlanCandidate& candidate);
  /// The units of each stage.
  const std::vector<UnitRange>& cuts(const PlanCandidate& candidate);

 private:
  const PlanProblem& problem_;
  std::map<std::tuple<int, int, Recompute>, ModelWork> work_;
  std::map<std::tuple<int, Recompute>, std::vector<UnitRange>> cuts_;
};

}  // namespace concertina
