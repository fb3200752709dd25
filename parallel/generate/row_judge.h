// Duration of rows of F, I and W as a longest path, and a lower bound for any rows.
// Invariant: evaluation allocates nothing and takes time linear in the number of actions.
#pragma once

#include <vector>

#include "parallel/plan/plan_index.h"
#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// The length to minimize: of the step, from its start to the last end of any rank, or of the
/// longest span of a rank, from the start of its first action to the end of its last one. With the
/// span, ranks need not start or end together, as in Qi et al. 2024 (arXiv 2401.10241, section
/// 5.3).
enum class Objective { step, span };

/// Returns the peak of what a row of F, I and W (or B) keeps, in stage activations: 1 from F
/// to I, `kept_for_weight` from I to W.
double kept_peak(const std::vector<Action>& row, double kept_for_weight = 1);

class RowJudge {
 public:
  RowJudge(const Layout& layout, const Costs& costs);

  /// Returns the end time of the rows; infinity if they deadlock.
  double makespan(const std::vector<std::vector<Action>>& rows);
  /// Returns the length of the rows for `objective`, in seconds; infinity if they deadlock.
  double length(const std::vector<std::vector<Action>>& rows, Objective objective);

  int ranks() const { return ranks_; }
  const std::vector<StageInfo>& stages() const { return stages_; }
  double seconds(const Action& action) const { return costs_.seconds(action); }
  /// Seconds from the end of an action to the use of its output on a neighboring stage.
  double message(int from_stage, int to_stage) const;

 private:
  int cell(const Action& action) const;
  /// Returns when the inputs of `action` are available; -1: one is missing; 0: it needs none.
  double input_end(const Action& action) const;

  const Costs& costs_;
  std::vector<StageInfo> stages_;
  int ranks_;
  std::vector<int> cell_begin_;
  std::vector<double> forward_end_, gradient_end_;  // by cell; -1: not run yet
  std::vector<std::size_t> position_;
  std::vector<double> clock_, begin_;  // by rank; begin_ is the start of its first action
};

/// Returns a lower bound in seconds for `objective`. For the span: the work of the busiest rank.
/// For the step: the maximum over ranks, each considered alone with preemption, where an action
/// cannot start before the chain of messages to it, and the chain after it must still follow
/// (Carlier's one-machine bound, 1982, computed with Jackson's rule).
double least_length(const RowJudge& judge, Objective objective);

}  // namespace concertina
