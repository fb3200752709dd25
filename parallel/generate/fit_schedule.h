// A user's own schedule, fitted to a job and a world.
// Invariant: what comes out is a layout that validates and a plan that check() accepts; a file says
// what each rank does, never which units or samples.
#pragma once

#include <string>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// A schedule as it is written: `layout` is what its rows say, one unit a stage.
struct ScheduleFile {
  std::string path;
  Plan plan;
  Layout layout;
};

/// Returns how many replicas of `file` make a world of this size, as its microbatches go into those
/// of a step; 0 if that is not what the world has ranks for.
int fitting_replicas(const ScheduleFile& file, int world, int microbatches);

struct Request;
/// Replicas of the file's own layout on all ranks, with units of these costs cut by the request's
/// partitioner, and the file's plan of them. Throws bad input if the file does not fit the request,
/// the model or the world.
struct FittedSchedule {
  Plan plan;
  Layout layout;
};
FittedSchedule fit_schedule(const Request& request, const std::vector<double>& unit_costs,
                            const LayoutLimits& limits);

}  // namespace concertina
