#include "parallel/generate/row_judge.h"

#include <algorithm>
#include <limits>

#include "core/index.h"

namespace concertina {
RowJudge::RowJudge(const Layout& layout, const Costs& costs)
    : costs_(costs), stages_(stage_infos(layout)), ranks_(rank_count(layout)) {
  cell_begin_.push_back(0);
  for (const StageInfo& stage : stages_)
    cell_begin_.push_back(cell_begin_.back() + stage.last_microbatch - stage.first_microbatch);
  forward_end_.resize(at(cell_begin_.back()));
  gradient_end_.resize(at(cell_begin_.back()));
  position_.resize(at(ranks_));
  clock_.resize(at(ranks_));
  begin_.resize(at(ranks_));
}

int RowJudge::cell(const Action& action) const {
  return cell_begin_[at(action.stage)] + action.microbatch -
         stages_[at(action.stage)].first_microbatch;
}

double RowJudge::seconds(const Action& action) const {
  const StageCosts& stage = costs_.stages[at(action.stage)];
  if (action.kind == Kind::F) return stage.forward;
  return action.kind == Kind::I ? stage.input : stage.weight;
}

double RowJudge::message(int from_stage, int to_stage) const {
  const int from = stages_[at(from_stage)].rank, to = stages_[at(to_stage)].rank;
  if (from == to) return 0;
  const LinkCosts& link = costs_.link(from, to);
  return 2 * costs_.post + link.latency +
         costs_.boundary_bytes * (1 / link.bandwidth + link.send_cpu + link.receive_cpu);
}

double RowJudge::input_end(const Action& action) const {
  const int own = cell(action);
  const StageInfo& stage = stages_[at(action.stage)];
  if (action.kind == Kind::W) return gradient_end_[at(own)];
  double end = 0;
  if (action.kind == Kind::I) end = forward_end_[at(own)];
  if (end < 0) return end;
  const bool forward = action.kind == Kind::F;
  if (forward ? stage.first : stage.last) return end;
  const int neighbour = action.stage + (forward ? -1 : 1);
  const double made =
      (forward ? forward_end_
               : gradient_end_)[at(cell({action.kind, neighbour, action.microbatch}))];
  return made < 0 ? made : std::max(end, made + message(neighbour, action.stage));
}

double RowJudge::makespan(const std::vector<std::vector<Action>>& rows) {
  std::fill(forward_end_.begin(), forward_end_.end(), -1.0);
  std::fill(gradient_end_.begin(), gradient_end_.end(), -1.0);
  std::fill(position_.begin(), position_.end(), 0);
  std::fill(clock_.begin(), clock_.end(), 0.0);
  bool moved = true, open = true;
  while (moved && open) {
    moved = open = false;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::vector<Action>& row = rows[at(rank)];
      for (std::size_t& i = position_[at(rank)]; i < row.size(); ++i, moved = true) {
        const double ready = input_end(row[i]);
        if (ready < 0) break;
        const double start = std::max(ready, clock_[at(rank)]), end = start + seconds(row[i]);
        if (i == 0) begin_[at(rank)] = start;
        clock_[at(rank)] = end;
        if (row[i].kind == Kind::F) forward_end_[at(cell(row[i]))] = end;
        if (row[i].kind == Kind::I) gradient_end_[at(cell(row[i]))] = end;
      }
      open = open || position_[at(rank)] < row.size();
    }
  }
  if (open) return std::numeric_limits<double>::infinity();
  return *std::max_element(clock_.begin(), clock_.end());
}

double RowJudge::length(const std::vector<std::vector<Action>>& rows, Objective objective) {
  const double seconds = makespan(rows);
  if (objective == Objective::step || seconds == std::numeric_limits<double>::infinity())
    return seconds;
  double span = 0;
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    if (!rows[rank].empty()) span = std::max(span, clock_[rank] - begin_[rank]);
  return span;
}

double kept_peak(const std::vector<Action>& row, double kept_for_weight) {
  // Whole microbatches and those between I and W apart: sums of shares would not come out even.
  int whole = 0, after = 0;
  double most = 0;
  for (const Action& action : row) {
    if (action.kind == Kind::F) ++whole;
    if (action.kind == Kind::I) --whole, ++after;
    if (action.kind == Kind::W) --after;
    if (action.kind == Kind::B) --whole;
    most = std::max(most, whole + kept_for_weight * after);
  }
  return most;
}

int RowJudge::peak(const std::vector<Action>& row) {
  int live = 0, most = 0;
  for (const Action& action : row) {
    if (action.kind == Kind::F) most = std::max(most, ++live);
    if (makes_weight_gradient(action.kind)) --live;
  }
  return most;
}

}  // namespace concertina
