// Merges rows that share a rank.
// Invariant: the result orders all actions by time, so it cannot deadlock.
#pragma once

#include "parallel/generate/schedule_registry.h"

namespace concertina {

struct TimedAction {
  double time = 0;
  Action action;
};
/// Returns the actions ordered by time; ties keep the given order.
std::vector<Action> in_order(std::vector<TimedAction> timed);

/// Simulates `plan` (compute actions only) with unit costs on separate ranks, then assigns row r to
/// rank `target[r]` of [0, ranks). Rows that share a rank are merged by start time.
Rows interleave(const Plan& plan, const Layout& layout, const std::vector<int>& target, int ranks);

/// The same for a generator: `stage_rows[s]` holds the actions of stage s of the shape, in order.
Rows place_stages(const PipelineShape& shape, Rows stage_rows);

}  // namespace concertina
