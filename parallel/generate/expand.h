// From a schedule and a layout to the compute actions of every rank: the first pass.
// Invariant: what comes out is complete and runs through; a layout that the schedule is not for,
// and a generator that leaves something out, are refused.
#pragma once

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

/// How an error about what the schedule called `name` does begins.
std::string blame(std::string_view name);

}  // namespace concertina
