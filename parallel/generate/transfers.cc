#include "parallel/generate/passes.h"

#include <algorithm>
#include <tuple>

#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

/// Returns the cell number of each action of a row. An overlapped F and the next action share a
/// cell, because transfers are placed around both.
std::vector<int> cells_of(const std::vector<Action>& row) {
  std::vector<int> cells;
  int next = 0;
  for (const Action& action : row) {
    cells.push_back(next);
    if (!action.overlapped) ++next;
  }
  return cells;
}

/// A SEND or RECV and its position: slot 2i is before the row's i-th cell, 2i + 1 after it.
struct Posting {
  Action action;
  int slot = 0;
};

/// Returns the costs that order transfers: only the costs of stages and messages, with a positive
/// duration for each action, so that an action always ends after everything that it needs.
Costs ordering_costs(const Layout& layout, const Costs& costs) {
  constexpr double kLeastShare = 1e-6;  // relative to the longest action
  Costs ordering = costs;
  ordering.buckets.clear();
  ordering.ranks.clear();
  double longest = 0;
  for (const StageCosts& stage : costs.stages)
    longest = std::max({longest, stage.forward, stage.input, stage.weight});
  if (longest == 0) ordering.stages = unit_costs(layout).stages;
  for (StageCosts& stage : ordering.stages) {
    for (double* seconds : {&stage.forward, &stage.input, &stage.weight})
      *seconds = std::max(*seconds, kLeastShare * longest);
    stage.fused = std::max(stage.fused, -stage.weight);
  }
  return ordering;
}

/// Returns all transfers in the order of their producers' ends, as postings by rank. A SEND is in
/// its final slot, a RECV in its consumer's slot, the latest possible one.
std::vector<std::vector<Posting>> order_transfers(const IndexedPlan& it, const Costs& costs,
                                                  const std::vector<std::vector<int>>& cells) {
  const auto& [plan, layout, index] = it;
  const Timeline timeline = simulate(plan, layout, ordering_costs(layout, costs));
  std::vector<std::tuple<double, Kind, int, int, int>> sends;  // end, kind, stage, microbatch, node
  for (int rank = 0; rank < static_cast<int>(plan.rows.size()); ++rank) {
    for (int position = 0; position < static_cast<int>(plan.rows[rank].size()); ++position) {
      const Action& action = plan.rows[rank][position];
      const StageInfo& stage = index.stages()[action.stage];
      const bool forward = action.kind == Kind::F && stage.remote_next;
      const bool backward = makes_input_gradient(action.kind) && stage.sends_gradient;
      if (forward || backward)
        sends.emplace_back(timeline.rows[rank][position].end, forward ? Kind::SEND_F : Kind::SEND_B,
                           action.stage, action.microbatch, index.node(rank, position));
    }
  }
  std::sort(sends.begin(), sends.end());

  std::vector<std::vector<Posting>> postings(plan.rows.size());
  for (const auto& [end, kind, stage, microbatch, node] : sends) {
    const Action send{kind, stage, microbatch}, receive = counterpart(send);
    const int consumer = kind == Kind::SEND_F
                             ? index.find(Kind::F, receive.stage, microbatch)
                             : index.find_input_gradient(receive.stage, microbatch);
    const Place from = index.place(node), to = index.place(consumer);
    postings[from.rank].push_back({send, 2 * cells[from.rank][from.position] + 1});
    postings[to.rank].push_back({receive, 2 * cells[to.rank][to.position]});
  }
  return postings;
}

/// Moves each RECV one cell ahead of its consumer if the order of transfers allows it: not before
/// an earlier SEND, and before any cell whose SEND is later in the order.
void post_early(std::vector<Posting>& postings) {
  std::vector<int> earliest;
  int sent = 0;
  for (const Posting& posting : postings) {
    if (is_send(posting.action.kind)) sent = posting.slot;
    earliest.push_back(sent);
  }
  int next = postings.empty() ? 0 : postings.back().slot;
  for (std::size_t i = postings.size(); i-- > 0;) {
    int& slot = postings[i].slot;
    if (!is_send(postings[i].action.kind))
      slot = std::max(earliest[i], std::min(slot - 2, next - next % 2));
    next = slot;
  }
}

std::vector<Action> weave(const std::vector<Action>& row, const std::vector<int>& cells,
                          const std::vector<Posting>& postings) {
  std::vector<Action> result;
  std::size_t next = 0;
  const auto post_up_to = [&](int slot) {
    while (next < postings.size() && postings[next].slot <= slot)
      result.push_back(postings[next++].action);
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    post_up_to(2 * cells[i]);
    result.push_back(row[i]);
    if (!row[i].overlapped) post_up_to(2 * cells[i] + 1);
  }
  return result;
}

}  // namespace

Plan add_transfers(const IndexedPlan& it) {
  return add_transfers(it, unit_costs(it.layout));
}

Plan add_transfers(const IndexedPlan& it, const Costs& costs) {
  const std::vector<std::vector<Action>>& rows = it.plan.rows;
  std::vector<std::vector<int>> cells;
  for (const std::vector<Action>& row : rows) cells.push_back(cells_of(row));
  std::vector<std::vector<Posting>> postings = order_transfers(it, costs, cells);
  Plan result;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    post_early(postings[rank]);
    result.rows.push_back(weave(rows[rank], cells[rank], postings[rank]));
  }
  return result;
}

}  // namespace concertina
