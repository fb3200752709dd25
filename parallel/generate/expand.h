// From a schedule and a layout to the compute actions of every rank: the first pass.
// Invariant: each pipeline by itself is complete and runs through; a layout that the schedule is
// not for, and a generator that leaves something out, are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// The compute actions of all pipelines, one row a world rank, as if no unit was frozen. A rank in
/// several pipelines gets their rows merged by the time at which each pipeline by itself, with unit
/// costs, would run them, but for the pairs of pipelines that the schedule orders itself. Throws
/// Error{bad_input} where the layout is not the one that the schedule is for. `name` is for errors:
/// a generator that leaves something out is the fault of who wrote it.
Plan expand(const Layout& layout, const Schedule& schedule, std::string_view name);

/// A schedule as it is given, by name or in a file.
struct GivenSchedule {
  Plan plan;               // computations; a file's may have transfers and reduction too
  std::string who, where;  // how an error about it begins, and its place
  bool named = false;      // I and W may become B; a file has them as it wants them
};

/// Throws Error{bad_input} if a plan of the layout could have more than kMostActions.
void require_size(const Layout& layout);

/// The computations of the schedule called `name`, which itself knows of no frozen units: expand().
/// Throws
/// Error{bad_input} too if there is no such schedule, or if it could have more than kMostActions.
GivenSchedule named_schedule(const Layout& layout, std::string_view name);

/// Actions that a plan can have at most, for so many microbatches on so many stages: F, I, W and
/// four transfers for each microbatch on each stage.
std::int64_t most_actions(std::int64_t stages, std::int64_t microbatches);

}  // namespace concertina
