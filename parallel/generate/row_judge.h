// The time of rows of F, I and W: a longest path, made again and again, and a lower bound of any.
// Invariant: no allocation after the constructor; linear in actions.
#pragma once

#include <vector>

#include "parallel/plan/plan_index.h"
#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// The length that is to be short: of the step, from its start to the last end of any rank; or of
/// the longest span of a rank, from the start of its first action to the end of its last one. Under
/// the span ranks need not start or end together, as Qi et al. 2024 (arXiv 2401.10241, section 5.3)
/// measure.
enum class Objective { step, span };

/// The most that a row of F, I and W (or B) keeps at a time, in microbatches of stages: 1 from F to
/// I, `kept_for_weight` from I to W.
double kept_peak(const std::vector<Action>& row, double kept_for_weight = 1);

class RowJudge {
 public:
  RowJudge(const Layout& layout, const Costs& costs);

  /// The time of the rows' last end; infinity if they deadlock.
  double makespan(const std::vector<std::vector<Action>>& rows);
  /// The rows' seconds by `objective`; infinity if they deadlock.
  double length(const std::vector<std::vector<Action>>& rows, Objective objective);

  int ranks() const { return ranks_; }
  const std::vector<StageInfo>& stages() const { return stages_; }
  double seconds(const Action& action) const { return costs_.seconds(action); }
  /// From the end of an action of one stage to what reads its output on a neighbour stage.
  double message(int from_stage, int to_stage) const;

 private:
  int cell(const Action& action) const;
  /// The end of what `action` waits for on another stage; -1 if it has not run, 0 if there is none.
  double input_end(const Action& action) const;

  const Costs& costs_;
  std::vector<StageInfo> stages_;
  int ranks_;
  std::vector<int> cell_begin_;
  std::vector<double> forward_end_, gradient_end_;  // by cell; -1: not yet
  std::vector<std::size_t> position_;
  std::vector<double> clock_, begin_;  // by rank; the start of its first action
};

/// Seconds by `objective`. Of a span: the work of the busiest rank. Of a step: the longest of its
/// ranks, each by itself, where an action may be interrupted, but not start before the chain of
/// messages to it, nor end with less than the chain after it left (Carlier 1982's bound for one
/// machine, by Jackson's rule).
double least_length(const RowJudge& judge, Objective objective);

}  // namespace concertina
