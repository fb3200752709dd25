// Passes that turn a named schedule or a schedule file into a plan that is ready to run.
// Invariant: every pass is pure; run_passes() checks the plan before the first pass and after each,
// so its result is proven.
#pragma once

#include <string>
#include <string_view>

#include "parallel/generate/expand.h"
#include "parallel/plan/check.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Removes what a frozen prefix of units does not need (Layout::frozen_units): I, W, B and REDUCE
/// of stages that are entirely frozen, and the transfers of their gradients.
Plan drop_frozen(Plan plan, const Layout& layout);

/// Merges each I and a directly following W into a B if no other rank waits for the I.
Plan merge_input_weight(const IndexedPlan& plan);

/// Marks an F as overlapped if the next action is a B or I of another microbatch that starts
/// without waiting when the F ends (with unit costs) and can start together with it, that is, does
/// not depend on that F through other ranks. `plan` contains compute actions only and passes
/// check(). No action moves, so the index stays valid, and overlaps do not introduce deadlocks.
IndexedPlan pair_overlaps(IndexedPlan plan);

/// Inserts SEND directly after the producer and RECV before the consumer where neighboring stages
/// are on different ranks. In every row, transfers follow one global order, by when their producers
/// end, so ranks never disagree, even with one stream per rank. Within that order, a RECV is posted
/// one compute action before its consumer if possible. `costs` determine the ends; the default is
/// unit costs, because the order is generated once, for balanced stages.
Plan add_transfers(const IndexedPlan& plan, const Costs& costs);
Plan add_transfers(const IndexedPlan& plan);

/// Appends to each row REDUCE for each of its stages, in order of completion, and STEP, which waits
/// for the reductions.
Plan add_reduction(Plan plan);

/// Runs the passes that `given` needs: drop_frozen(); merge_input_weight() for named schedules;
/// pair_overlaps() if `overlap` and it has compute actions only; add_transfers() and
/// add_reduction() if they are `due` and it has none; and STEP if it only has REDUCE, like
/// PyTorch's files. An error before the first pass is an error in the schedule: throws RefusedPlan
/// (parallel/plan/plan_grid.h). An error after a pass is a programming error.
Plan run_passes(GivenSchedule given, const Layout& layout, const Limits& due = {},
                bool overlap = false);

/// run_passes() for the schedule `name`.
Plan make_plan(const Layout& layout, std::string_view name, const Limits& due = {},
               bool overlap = false);

}  // namespace concertina
