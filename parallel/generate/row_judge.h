// How long rows of F, I and W take: a longest path, made again and again.
// Invariant: no allocation after the constructor; linear in actions.
#pragma once

#include <vector>

#include "parallel/plan/plan_index.h"
#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

class RowJudge {
 public:
  RowJudge(const Layout& layout, const Costs& costs);

  /// The time of the rows' last end; infinity if they deadlock.
  double makespan(const std::vector<std::vector<Action>>& rows);
  /// Most microbatches of stages between F and W or B in one row.
  static int peak(const std::vector<Action>& row);

  int ranks() const { return ranks_; }
  const std::vector<StageInfo>& stages() const { return stages_; }
  double seconds(const Action& action) const;
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
  std::vector<double> clock_;
};

}  // namespace concertina
