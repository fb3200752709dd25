// A user's own schedule, fitted to a job and a world.
// Invariant: what comes out is as many copies of the file as there are replicas; a file says what
// each rank does, never which units or samples.
#pragma once

#include <string>
#include <vector>

#include "parallel/generate/expand.h"
#include "parallel/plan/fit_layout.h"

namespace concertina {

/// A schedule as it is written: `layout` is what its rows say, one unit a stage.
struct ScheduleFile {
  std::string path;
  Plan plan;
  Layout layout;

  int ranks() const { return static_cast<int>(plan.rows.size()); }
  int microbatches() const { return layout.pipelines.back().last_microbatch; }
};

/// Returns how many replicas of `file` make a world of this size, as its microbatches go into those
/// of a step; 0 if that is not what the world has ranks for.
int fitting_replicas(const ScheduleFile& file, int world, int microbatches);

struct Request;
/// Replicas of the file's own layout on all ranks, with units of these costs cut by the request's
/// partitioner. Throws bad input if the file does not fit the request, the model or the world.
Layout file_layout(const Request& request, const std::vector<double>& unit_costs,
                   const LayoutLimits& limits);

/// The file's plan for each replica; a layout of the request's own is that of the file as it is.
GivenSchedule file_schedule(const Request& request);

}  // namespace concertina
