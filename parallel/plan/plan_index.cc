#include "parallel/plan/plan_index.h"

#include <algorithm>

namespace concertina {

std::vector<StageInfo> stage_infos(const Layout& layout) {
  std::vector<StageInfo> infos;
  for (const Pipeline& pipeline : layout.pipelines) {
    const std::vector<StagePlacement>& stages = pipeline.stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      StageInfo& info = infos.emplace_back();
      info.rank = stages[s].rank;
      info.first_microbatch = pipeline.first_microbatch;
      info.last_microbatch = pipeline.last_microbatch;
      info.first = s == 0;
      info.last = s + 1 == stages.size();
      info.remote_previous = !info.first && stages[s - 1].rank != info.rank;
      info.remote_next = !info.last && stages[s + 1].rank != info.rank;
      info.trains = stages[s].last_unit > layout.frozen_units;
      info.keeps_input = !info.first && stages[s].first_unit >= layout.frozen_units;
      info.gives_gradient = !info.first && stages[s].first_unit > layout.frozen_units;
      info.sends_gradient = info.gives_gradient && info.remote_previous;
      info.receives_gradient = info.trains && info.remote_next;
    }
  }
  return infos;
}

PlanIndex::PlanIndex(const Plan& plan, const Layout& layout) : stages_(stage_infos(layout)) {
  cell_begin_.push_back(0);
  for (const StageInfo& stage : stages_)  // one extra cell, for REDUCE
    cell_begin_.push_back(cell_begin_.back() + stage.last_microbatch - stage.first_microbatch + 1);
  node_.assign(static_cast<std::size_t>(cell_begin_.back()) * kKinds, -1);

  number_channels();
  row_begin_.push_back(0);
  for (const std::vector<Action>& row : plan.rows) {
    int node = row_begin_.back();
    for (const Action& action : row) {
      if (action.kind != Kind::STEP && contains(action) && node_[cell(action)] < 0)
        node_[cell(action)] = node;
      ++node;
    }
    row_begin_.push_back(node);
  }
}

bool PlanIndex::contains(const Action& action) const {
  if (action.kind == Kind::STEP) return action.stage == 0 && action.microbatch == -1;
  if (action.stage < 0 || action.stage >= static_cast<int>(stages_.size())) return false;
  if (action.kind == Kind::REDUCE) return action.microbatch == -1;
  const StageInfo& stage = stages_[action.stage];
  return action.microbatch >= stage.first_microbatch && action.microbatch < stage.last_microbatch;
}

void PlanIndex::number_channels() {
  std::vector<std::pair<int, int>> ends;  // from, to
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (!stages_[s].remote_next) continue;
    ends.emplace_back(stages_[s].rank, stages_[s + 1].rank);
    ends.emplace_back(stages_[s + 1].rank, stages_[s].rank);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  channels_ = static_cast<int>(ends.size());
  const auto number = [&](int from, int to) {
    const auto entry = std::lower_bound(ends.begin(), ends.end(), std::pair(from, to));
    return static_cast<int>(entry - ends.begin());
  };
  forward_channel_.assign(stages_.size(), -1);
  backward_channel_.assign(stages_.size(), -1);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    if (!stages_[s].remote_next) continue;
    forward_channel_[s] = number(stages_[s].rank, stages_[s + 1].rank);
    backward_channel_[s] = number(stages_[s + 1].rank, stages_[s].rank);
  }
}

int PlanIndex::channel(const Action& transfer) const {
  switch (transfer.kind) {
    case Kind::SEND_F:
      return forward_channel_[transfer.stage];
    case Kind::RECV_F:
      return forward_channel_[transfer.stage - 1];
    case Kind::RECV_B:
      return backward_channel_[transfer.stage];
    default:
      return backward_channel_[transfer.stage - 1];
  }
}

std::size_t PlanIndex::cell(const Action& action) const {
  const int first = stages_[action.stage].first_microbatch;
  const int column = action.microbatch < 0 ? 0 : action.microbatch - first + 1;
  return static_cast<std::size_t>(cell_begin_[action.stage] + column) * kKinds +
         static_cast<std::size_t>(action.kind);
}

int PlanIndex::find(Kind kind, int stage, int microbatch) const {
  const Action action{kind, stage, microbatch};
  return contains(action) ? node_[cell(action)] : -1;
}

int PlanIndex::find_input_gradient(int stage, int microbatch) const {
  const int both = find(Kind::B, stage, microbatch);
  return both >= 0 ? both : find(Kind::I, stage, microbatch);
}

int PlanIndex::find_last(int stage, int microbatch) const {
  const int both = find(Kind::B, stage, microbatch);
  return both >= 0 ? both : find(Kind::W, stage, microbatch);
}

Place PlanIndex::place(int node) const {
  const auto row = std::upper_bound(row_begin_.begin(), row_begin_.end(), node) - 1;
  return {static_cast<int>(row - row_begin_.begin()), node - *row};
}

}  // namespace concertina
