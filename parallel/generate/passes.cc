#include "parallel/generate/passes.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "parallel/generate/overlap.h"
#include "parallel/plan/plan_grid.h"
#include "parallel/plan/plan_index.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

constexpr const char* kKey = "parallel.schedule";

void verify(const Plan& plan, const Layout& layout, std::string_view pass) {
  const std::optional<Violation> violation = check(plan, layout, limits_of(plan));
  CONCERTINA_CHECK(!violation, "the pass '{}' broke the plan: {}", pass, violation->text);
}

/// Ends each row with REDUCE and STEP.
Plan append_tails(Plan plan) {
  for (std::vector<Action>& row : plan.rows) {
    std::vector<int> stages;  // by their last gradient, the latest first
    for (auto action = row.rbegin(); action != row.rend(); ++action) {
      const bool gradient = makes_weight_gradient(action->kind);
      if (gradient && std::find(stages.begin(), stages.end(), action->stage) == stages.end())
        stages.push_back(action->stage);
    }
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
      row.push_back({Kind::REDUCE, *stage, -1});
    row.push_back({Kind::STEP, 0, -1});
  }
  return plan;
}

[[noreturn]] void refuse(std::string_view name, const Plan& plan, const Violation& violation) {
  throw RefusedPlan(plan, violation,
                    fmt::format("the schedule '{}' is wrong for this layout: ", name), kKey);
}

/// For each action of a row, the number of its cell: an overlapped F and the action after it are
/// one, since transfers go around both.
std::vector<int> cells_of(const std::vector<Action>& row) {
  std::vector<int> cells;
  int next = 0;
  for (const Action& action : row) {
    cells.push_back(next);
    if (!action.overlapped) ++next;
  }
  return cells;
}

/// A SEND or RECV and where it goes: slot 2i is before the row's i-th cell, 2i + 1 after it.
struct Posting {
  Action action;
  int slot = 0;
};

/// All transfers, in the order of their producers' ends with unit costs, as each rank's postings.
/// A SEND has its final slot; a RECV that of its consumer, the latest one possible.
std::vector<std::vector<Posting>> order_transfers(const Plan& plan, const Layout& layout) {
  const PlanIndex index(plan, layout);
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
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

  std::vector<std::vector<int>> cells;
  for (const std::vector<Action>& row : plan.rows) cells.push_back(cells_of(row));
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

/// Moves each RECV one cell ahead of its consumer, as far as the order of transfers lets it: not
/// before an earlier SEND, and ahead of the cell whose SEND is later in the order.
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

std::vector<Action> weave(const std::vector<Action>& row, const std::vector<Posting>& postings) {
  std::vector<Action> result;
  std::size_t next = 0;
  const auto post_up_to = [&](int slot) {
    while (next < postings.size() && postings[next].slot <= slot)
      result.push_back(postings[next++].action);
  };
  const std::vector<int> cells = cells_of(row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    post_up_to(2 * cells[i]);
    result.push_back(row[i]);
    if (!row[i].overlapped) post_up_to(2 * cells[i] + 1);
  }
  return result;
}

Plan weave_transfers(const Plan& plan, const Layout& layout) {
  std::vector<std::vector<Posting>> postings = order_transfers(plan, layout);
  Plan result;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    post_early(postings[rank]);
    result.rows.push_back(weave(plan.rows[rank], postings[rank]));
  }
  return result;
}

}  // namespace

Plan drop_frozen(Plan plan, const Layout& layout) {
  if (layout.frozen_units == 0) return plan;
  const std::vector<StageInfo> stages = stage_infos(layout);
  const auto needless = [&](const Action& action) {
    if (action.stage < 0 || action.stage >= std::ssize(stages)) return false;
    const StageInfo& stage = stages[action.stage];
    if (action.kind == Kind::SEND_B) return !stage.first && !stage.gives_gradient;
    const bool forward = action.kind == Kind::F || action.kind == Kind::SEND_F ||
                         action.kind == Kind::RECV_F || action.kind == Kind::STEP;
    return !stage.trains && !forward;
  };
  for (std::vector<Action>& row : plan.rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      if (needless(row[i + 1])) row[i].overlapped = false;
    std::erase_if(row, needless);
  }
  return plan;
}

Plan merge_input_weight(const Plan& plan, const Layout& layout) {
  const std::vector<StageInfo> stages = stage_infos(layout);
  Plan result;
  for (const std::vector<Action>& row : plan.rows) {
    std::vector<Action>& merged = result.rows.emplace_back();
    for (const Action& action : row) {
      const Action input{Kind::I, action.stage, action.microbatch};
      if (action.kind == Kind::W && !stages[action.stage].sends_gradient && !merged.empty() &&
          merged.back() == input)
        merged.back().kind = Kind::B;
      else
        merged.push_back(action);
    }
  }
  verify(result, layout, "merge_input_weight");
  return result;
}

Plan add_transfers(const Plan& plan, const Layout& layout) {
  const Plan result = weave_transfers(plan, layout);
  verify(result, layout, "add_transfers");
  return result;
}

Plan add_reduction(const Plan& plan, const Layout& layout) {
  const Plan result = append_tails(plan);
  verify(result, layout, "add_reduction");
  return result;
}

Plan complete(Plan plan, const Layout& layout, const std::string& where, const Limits& limits,
              bool overlap) {
  const auto require = [&](const Limits& due) {
    if (const auto violation = check(plan, layout, due))
      throw RefusedPlan(plan, *violation, "", where);
  };
  plan = drop_frozen(std::move(plan), layout);
  Limits own = limits_of(plan);
  own.leaf_microbatches = limits.leaf_microbatches;
  const auto holds = [&](Kind kind) {
    return std::any_of(plan.rows.begin(), plan.rows.end(), [&](const auto& row) {
      return std::any_of(row.begin(), row.end(), [&](const Action& a) { return a.kind == kind; });
    });
  };
  if (own.reduction && !holds(Kind::STEP))
    for (std::vector<Action>& row : plan.rows) row.push_back({Kind::STEP, 0, -1});
  require(own);
  if (overlap && !own.transfers && !own.reduction) plan = pair_overlaps(plan, layout);
  if (limits.transfers && !own.transfers) plan = weave_transfers(plan, layout);
  if (limits.reduction && !own.reduction) plan = append_tails(std::move(plan));
  require(limits);
  return plan;
}

std::int64_t most_actions(std::int64_t stages, std::int64_t microbatches) {
  constexpr std::int64_t kPerCell = 7;
  return kPerCell * stages * microbatches;
}

Plan make_plan(const Layout& layout, std::string_view name, const Limits& limits, bool overlap) {
  std::int64_t actions = 0;
  for (const Pipeline& pipeline : layout.pipelines)
    actions += most_actions(std::ssize(pipeline.stages), pipeline.microbatches());
  if (actions > static_cast<std::int64_t>(kMostActions))
    throw_input(fmt::format("the schedule can have {} actions, at most {} are possible", actions,
                            kMostActions),
                kKey, "fewer ranks, microbatches or chunks");
  const Schedule& schedule = find_schedule(name).value;
  Plan plan = merge_input_weight(drop_frozen(expand(layout, schedule, name), layout), layout);
  if (overlap) plan = pair_overlaps(plan, layout);
  if (limits.transfers) plan = add_transfers(plan, layout);
  if (limits.reduction) plan = add_reduction(plan, layout);
  if (const auto violation = check(plan, layout, limits)) refuse(name, plan, *violation);
  return plan;
}

}  // namespace concertina
