// Rows that meet on one rank become one row.
// Invariant: the result follows one order of time over all actions, so it cannot deadlock.
#pragma once

#include "parallel/generate/schedule_registry.h"

namespace concertina {

struct TimedAction {
  double time = 0;
  Action action;
};
/// The actions in the order of their times, and where these are equal in the order given.
std::vector<Action> in_order(std::vector<TimedAction> timed);

/// Runs `plan` (compute actions only) with unit costs on its own ranks, then gives row r to rank
/// `target[r]` of [0, ranks); rows that meet are merged by start time.
Rows interleave(const Plan& plan, const Layout& layout, const std::vector<int>& target, int ranks);

/// The same for a generator: `stage_rows[s]` is what stage s of the shape does, in order.
Rows place_stages(const PipelineShape& shape, Rows stage_rows);

}  // namespace concertina
