// From a schedule, named or in a file, to a plan that is ready to run, in passes that each do one
// thing.
// Invariant: every pass is pure; make_plan() and complete() check the plan before the first pass
// and after each one, so what they return is proven.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "parallel/generate/expand.h"
#include "parallel/generate/overlap.h"
#include "parallel/generate/transfers.h"
#include "parallel/plan/check.h"

namespace concertina {

/// Without what a frozen prefix of units has no use for (Layout::frozen_units): I, W, B and REDUCE
/// of the stages that are frozen as a whole, and the gradients that they would get.
Plan drop_frozen(Plan plan, const Layout& layout);

/// I directly followed by its own W becomes B, where no other rank waits for the I.
Plan merge_input_weight(const Plan& plan, const Layout& layout);

/// At the end of each row: REDUCE for each of its stages, in the order in which they finish, and
/// STEP, which waits for the reductions.
Plan add_reduction(Plan plan);

/// Completes a plan that was read from a file, after drop_frozen(): transfers, if it has none at
/// all; REDUCE and STEP, if it has neither, or STEP alone, as PyTorch writes no STEP. `overlap`:
/// pair_overlaps() too, if it has computations only. Throws RefusedPlan with `where`
/// (parallel/plan/plan_grid.h) if the plan as it is given breaks a rule or a bound of `limits`.
Plan complete(Plan plan, const Layout& layout, const std::string& where, const Limits& limits = {},
              bool overlap = false);

/// Actions that a plan can have at most, for so many microbatches on so many stages: F, I, W and
/// four transfers for each microbatch on each stage.
std::int64_t most_actions(std::int64_t stages, std::int64_t microbatches);

/// All passes, for the schedule called `name`, which itself knows of no frozen units; `overlap`:
/// pair_overlaps() too. Throws Error{bad_input} if there is no such schedule, or if the plan could
/// have more than kMostActions, and RefusedPlan if the schedule breaks a bound of `limits`.
Plan make_plan(const Layout& layout, std::string_view name, const Limits& limits = {},
               bool overlap = false);

}  // namespace concertina
