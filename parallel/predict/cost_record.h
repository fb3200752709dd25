// The times of a run's units and ranks where all units train, put together from steps in which not
// all of them did. Invariant: plain values; the same on every rank if the steps' figures are.
#pragma once

#include <vector>

#include "core/model/model_spec.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// The times of typical steps.
struct StepCosts {
  /// Of a microbatch on a rank of factor 1: means over holders. 0 where a pass did not run.
  std::vector<UnitSeconds> units;
  MachineModel machine;         // but for its links and its memory
  double trained_elements = 0;  // that machine's update is of
};

class CostRecord {
 public:
  /// `model` outlives it.
  explicit CostRecord(const ModelSpec& model);

  /// `seen`: of steps with units [0, frozen) frozen. The newest figure of a pass counts; those of
  /// the update are from the steps in which most trained.
  void add(const StepCosts& seen, int frozen);

  /// Whether each pass that has any FLOPs has been seen.
  bool complete() const;
  /// Seconds of each unit as if it trains. A pass that was never seen is taken from its FLOPs, at
  /// the rate of those that were; the forward pass of a unit that was never frozen, at the rate of
  /// those of which both were seen.
  std::vector<UnitSeconds> full() const;
  /// With the newest factor of each rank: one that is spare keeps that of its last work.
  const MachineModel& machine() const { return machine_; }

 private:
  const ModelSpec& model_;
  const std::vector<UnitCost> flops_;  // of units that train
  std::vector<UnitSeconds> known_;     // 0: not yet
  MachineModel machine_;
  double most_trained_ = 0;
};

}  // namespace concertina
