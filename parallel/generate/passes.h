// From a schedule, named or in a file, to a plan that is ready to run, in passes that each do one
// thing.
// Invariant: every pass is pure; run_passes() checks the plan before the first one and after each,
// so what it returns is proven.
#pragma once

#include <string>
#include <string_view>

#include "parallel/generate/expand.h"
#include "parallel/plan/check.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Without what a frozen prefix of units has no use for (Layout::frozen_units): I, W, B and REDUCE
/// of the stages that are frozen as a whole, and the gradients that they would get.
Plan drop_frozen(Plan plan, const Layout& layout);

/// I directly followed by its own W becomes B, where no other rank waits for the I.
Plan merge_input_weight(const IndexedPlan& plan);

/// Marks an F as overlapped if a B or I of another microbatch stands right after it, starts
/// without a wait when the F ends (with unit costs), and can start together with it: what it needs
/// does not come from that F through other ranks. `plan` has compute actions only and passes
/// check(). No action moves, so the index stays; a plan that cannot deadlock cannot with its
/// overlaps either.
IndexedPlan pair_overlaps(IndexedPlan plan);

/// SEND right after what produces, and RECV before what consumes, wherever neighbour stages are on
/// different ranks. All transfers get one order, that of their producers' ends, and every row
/// follows it: so no two ranks ever disagree, even on one stream per rank. In that order a RECV is
/// posted one compute action before its consumer where it can be. `costs`: of the stages and links
/// that the ends are of; else unit costs: a schedule's order is made once, for balanced stages.
Plan add_transfers(const IndexedPlan& plan, const Costs& costs);
Plan add_transfers(const IndexedPlan& plan);

/// At the end of each row: REDUCE for each of its stages, in the order in which they finish, and
/// STEP, which waits for the reductions.
Plan add_reduction(Plan plan);

/// Runs all passes that `given` lacks: drop_frozen(); merge_input_weight() of a named schedule;
/// pair_overlaps(), if `overlap` and it has computations only; add_transfers() and add_reduction(),
/// if they are `due` and it has none at all; STEP, if it has REDUCE alone, as PyTorch's files do.
/// A fault before the first pass is the schedule's: throws RefusedPlan (parallel/plan/plan_grid.h).
/// One after a pass is a programming error.
Plan run_passes(GivenSchedule given, const Layout& layout, const Limits& due = {},
                bool overlap = false);

/// run_passes() for a plan that was read from the file `where`.
Plan complete(Plan plan, const Layout& layout, const std::string& where, const Limits& due = {},
              bool overlap = false);

/// run_passes() for the schedule called `name`.
Plan make_plan(const Layout& layout, std::string_view name, const Limits& due = {},
               bool overlap = false);

}  // namespace concertina
