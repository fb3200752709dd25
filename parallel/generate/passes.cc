#include "parallel/generate/passes.h"

#include <algorithm>

#include "core/error.h"
#include "parallel/plan/plan_grid.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

/// Adds STEP to PyTorch's files, which have REDUCE_GRAD but no STEP.
Plan end_rows(Plan plan) {
  bool reduces = false, steps = false;
  for (const std::vector<Action>& row : plan.rows)
    for (const Action& action : row) {
      reduces |= action.kind == Kind::REDUCE;
      steps |= action.kind == Kind::STEP;
    }
  for (std::vector<Action>& row : plan.rows)
    if (reduces && !steps) row.push_back({Kind::STEP, 0, -1});
  return plan;
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

Plan merge_input_weight(const IndexedPlan& it) {
  const std::vector<StageInfo>& stages = it.index.stages();
  Plan result;
  for (const std::vector<Action>& row : it.plan.rows) {
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
  return result;
}

Plan add_reduction(Plan plan) {
  for (std::vector<Action>& row : plan.rows) {
    std::vector<int> stages;  // by last gradient, latest first
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

Plan run_passes(GivenSchedule given, const Layout& layout, const Limits& due, bool overlap) {
  const auto require = [&](const Plan& plan, const std::optional<Violation>& violation) {
    if (violation) throw RefusedPlan(plan, *violation, given.who, given.where);
  };
  Plan first = end_rows(drop_frozen(std::move(given.plan), layout));
  require(first, check_size(first, layout));
  IndexedPlan plan(std::move(first), layout);
  const Limits has = limits_of(plan.plan, due);
  require(plan.plan, check(plan, has));
  const auto take = [&](const char* pass, IndexedPlan made) {
    const auto violation = check(made, limits_of(made.plan, due));
    CONCERTINA_CHECK(!violation, "pass '{}' broke the plan: {}", pass, violation->text);
    plan = std::move(made);
  };
  if (given.named) take("merge_input_weight", {merge_input_weight(plan), layout});
  if (overlap && !has.transfers && !has.reduction) take("pair_overlaps", pair_overlaps(plan));
  if (due.transfers && !has.transfers) take("add_transfers", {add_transfers(plan), layout});
  if (due.reduction && !has.reduction)
    take("add_reduction", {add_reduction(std::move(plan.plan)), layout});
  return std::move(plan.plan);
}

Plan make_plan(const Layout& layout, std::string_view name, const Limits& due, bool overlap) {
  return run_passes(named_schedule(layout, name), layout, due, overlap);
}

}  // namespace concertina
