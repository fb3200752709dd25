// The mean durations of each stage's actions, from records of steps.
// Invariant: consists of sums and counts, so values of several ranks and steps can be added.
#pragma once

#include <vector>

#include "parallel/plan/step_record.h"
#include "parallel/simulate/costs.h"

namespace concertina {

class StageMeans {
 public:
  explicit StageMeans(const Layout& layout);

  /// Adds the compute actions of one rank's step, without waits.
  void add(const std::vector<Action>& row, const StepRecord& record);
  /// Sums and counts for transport between ranks; add() accepts any number of them.
  const std::vector<double>& values() const { return values_; }
  void add(const std::vector<double>& values);

  /// The costs by stage of the layout (see stage_costs()).
  std::vector<StageCosts> costs() const;

 private:
  std::vector<double> values_;  // by stage and kind F, I, W, B: seconds, actions
};

}  // namespace concertina
