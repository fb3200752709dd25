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

/// What one unit keeps of one microbatch on one device.
struct UnitBytes {
  double input = 0;             // at its input
  double saved = 0, grads = 0;  // from F to W and from I to W, with those at its input
  double scratch = 0;           // while its backward pass runs
};

/// Parameters that some units hold together: a unit's own ones, or a tensor that several share.
struct HeldParameters {
  double elements = 0;  // on one device
  std::vector<int> units{};
};

/// All units of a model, for microbatches and groups of one size.
struct ModelWork {
  std::vector<UnitSeconds> seconds{};  // with what is computed again and the sums over the group
  std::vector<UnitBytes> bytes{};
  std::vector<double> flops{};  // that cuts balance, of one sample
  std::vector<HeldParameters> parameters{};
  double again = 0, group = 0;  // seconds of all units: computed again; the sums over the group
  double again_flops = 0;       // of all units on all devices
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
