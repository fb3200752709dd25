// The first pass: from a schedule and a layout to the compute actions of every rank.
// Invariant: each pipeline alone is complete and can run; rejects layouts that do not match the
// schedule, and generators that omit actions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// Returns the compute actions of all pipelines, one row per world rank, as if no unit were frozen.
/// If a rank belongs to several pipelines, their rows are merged by the time at which each pipeline
/// alone would run them with unit costs, except for pairs of pipelines that the schedule orders
/// itself. Throws Error{bad_input} if the layout does not match the schedule. `name` is for errors:
/// a generator that omits actions has a bug.
Plan expand(const Layout& layout, const Schedule& schedule, std::string_view name);

/// A schedule given by name or in a file.
struct GivenSchedule {
  Plan plan;               // compute actions; a file may also have transfers and reduction
  std::string who, where;  // prefix and location of errors about it
  bool named = false;      // whether I and W may be merged into B; a file is kept unchanged
};

/// Throws Error{bad_input} if a plan for the layout could exceed kMostActions.
void require_size(const Layout& layout);

/// Returns expand() of the schedule `name`, without regard to frozen units. Also throws
/// Error{bad_input} if the schedule does not exist or could exceed kMostActions.
GivenSchedule named_schedule(const Layout& layout, std::string_view name);

/// Maximum number of actions in a plan: F, I, W and four transfers per microbatch and stage.
std::int64_t most_actions(std::int64_t stages, std::int64_t microbatches);

}  // namespace concertina
