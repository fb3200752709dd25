// The mean times of each stage's actions, from records of steps.
// Invariant: sums and counts, so those of several ranks and steps add up.
#pragma once

#include <vector>

#include "parallel/plan/step_record.h"
#include "parallel/simulate/costs.h"

namespace concertina {

class StageMeans {
 public:
  explicit StageMeans(const Layout& layout);

  /// The compute actions of one rank's step, without the waits inside them.
  void add(const std::vector<Action>& row, const StepRecord& record);
  /// Sums and counts, to be carried between ranks; add() takes in those of any number of ranks, one
  /// after the other.
  const std::vector<double>& values() const { return values_; }
  void add(const std::vector<double>& values);

  /// The costs by stage of the layout, see stage_costs().
  std::vector<StageCosts> costs() const;

 private:
  std::vector<double> values_;  // by stage and kind F, I, W, B: seconds, actions
};

}  // namespace concertina
