// Work and duration of a unit on one device of a tensor-parallel group, for this program or
// another, derived from its UnitCost. The machine is described by numbers only. Matrix products run
// at the rate of large ones, memory-bound work at memory bandwidth, sums over the group at the rate
// within a host, and each pass adds a constant launch cost. So the speed depends on the microbatch
// size, the width and tp. Invariant: pure; what the machine does not specify takes no time.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "parallel/predict/plan_candidate.h"

namespace concertina {

/// Returns `cost` for the kernels of `software`. `element` is the size of an activation's element.
UnitCost cost_by(const Software& software, const UnitCost& cost, double element);
/// Returns one device's part of `cost` in a group of `tp`, for `samples` times as many samples.
UnitCost share_of(const UnitCost& cost, int tp, int samples);
/// Elements of a parameter on one device in a group of `tp`.
double share_of(const ParameterSpec& parameter, int tp);

/// Seconds per microbatch. W adds `sums` bytes of gradients to the previous ones.
UnitSeconds seconds_on(const MachineModel& machine, const UnitCost& cost, double sums);
/// The same for each unit of `model`, for the passes that it runs in `costs`.
std::vector<UnitSeconds> seconds_on(const MachineModel& machine, const ModelSpec& model,
                                    const std::vector<UnitCost>& costs);

/// Memory that one unit needs for one microbatch on one device.
struct UnitBytes {
  double input = 0;             // kept for its input
  double saved = 0, grads = 0;  // kept from F to W and from I to W, including the input
  double scratch = 0;           // during its backward pass
};

/// Parameters that belong to the same units: those of a single unit, or a tensor shared by several.
struct HeldParameters {
  double elements = 0;  // on one device
  std::vector<int> units{};
};

/// All units of a model, for a microbatch size and group size.
struct ModelWork {
  std::vector<UnitSeconds> seconds{};  // including recomputation and the sums over the group
  std::vector<UnitBytes> bytes{};
  std::vector<double> flops{};  // what partitions balance, per sample
  std::vector<HeldParameters> parameters{};
  double again = 0, group = 0;  // seconds of all units: recomputation; the sums over the group
  double recompute_flops = 0;   // sum over all units on all devices
};

/// Caches the work of each kind of candidate.
class WorkTable {
 public:
  /// `problem` must outlive it.
  explicit WorkTable(const PlanProblem& problem) : problem_(problem) {}
  const ModelWork& of(const PlanCandidate& candidate);
  /// Returns the units of each stage.
  const std::vector<UnitRange>& cuts(const PlanCandidate& candidate);

 private:
  const PlanProblem& problem_;
  std::map<std::tuple<int, int, Recompute>, ModelWork> work_;
  std::map<std::tuple<int, Recompute>, std::vector<UnitRange>> cuts_;
};

}  // namespace concertina
