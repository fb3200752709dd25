// What each unit takes where it trains, put together from steps in which not all of them did.
// Invariant: plain values; the same on every rank if the steps' figures are.
#pragma once

#include <vector>

#include "core/model_spec.h"
#include "parallel/runtime/unit_clock.h"

namespace concertina {

class UnitRecord {
 public:
  /// `model` outlives it.
  explicit UnitRecord(const ModelSpec& model);

  /// `seen`: seconds of every unit for one microbatch in steps with units [0, frozen) frozen; 0
  /// where a pass did not run. The newest figure of a pass counts.
  void add(const std::vector<UnitSeconds>& seen, int frozen);

  /// Seconds of each unit as if it trains. A pass that never ran is taken from its FLOPs, at the
  /// rate of those that did.
  std::vector<UnitSeconds> full() const;

 private:
  const ModelSpec& model_;
  const std::vector<UnitCost> flops_;  // of units that train
  std::vector<UnitSeconds> known_;     // 0: not yet
};

}  // namespace concertina
