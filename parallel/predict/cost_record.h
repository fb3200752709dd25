// Times of a run's units and ranks as if all units trained, derived from steps in which only some
// do. Invariant: plain values; the same on every rank if the inputs are.
#pragma once

#include <vector>

#include "core/model/model_spec.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Times of typical steps.
struct StepCosts {
  /// Per microbatch on a rank with factor 1, mean over holders; 0 if a pass did not run.
  std::vector<UnitSeconds> units;
  MachineModel machine;         // except its links and memory
  double trained_elements = 0;  // number of elements updated when `machine` was measured
};

class CostRecord {
 public:
  /// `model` must outlive it.
  explicit CostRecord(const ModelSpec& model);

  /// `seen` is from steps with units [0, frozen) frozen. The newest value of each pass is used;
  /// values for the update are from the steps in which the most elements trained.
  void add(const StepCosts& seen, int frozen);

  /// Whether every pass that has FLOPs has been measured.
  bool complete() const;
  /// Returns the time of each unit as if it trained. Passes without a measurement are estimated
  /// from FLOPs at the rate of the measured ones; the frozen forward pass of a unit that was never
  /// frozen, from its forward pass and the ratio of the two in other units.
  std::vector<UnitSeconds> full() const;
  /// The machine, with each rank's newest factor; a spare rank keeps its last one.
  const MachineModel& machine() const { return machine_; }

 private:
  const ModelSpec& model_;
  const std::vector<UnitCost> flops_;  // costs of units that train
  std::vector<UnitSeconds> known_;     // 0: not measured yet
  MachineModel machine_;
  double most_trained_ = 0;
};

}  // namespace concertina
