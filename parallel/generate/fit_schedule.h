// Fits a user's schedule file to a job and a world.
// Invariant: the result contains one copy of the file per replica; a file specifies what each rank
// does, never which units or samples.
#pragma once

#include <string>
#include <vector>

#include "parallel/generate/expand.h"
#include "parallel/plan/fit_layout.h"

namespace concertina {

/// A schedule as written: `layout` is inferred from its rows, with one unit per stage.
struct ScheduleFile {
  std::string path;
  Plan plan;
  Layout layout;

  int ranks() const { return static_cast<int>(plan.rows.size()); }
  int microbatches() const { return layout.pipelines.back().last_microbatch; }
};

/// Returns the number of replicas of `file` that matches both the world size and the number of
/// microbatches of a step, or 0 if there is none.
int fitting_replicas(const ScheduleFile& file, int world, int microbatches);

struct Request;
/// Places replicas of the file's layout on all ranks; the request's partitioner splits units of
/// these costs. Throws Error{bad_input} if the file does not fit the request, model or world.
Layout file_layout(const Request& request, const std::vector<double>& unit_costs,
                   const LayoutLimits& limits);

/// Returns the file's plan repeated for each replica or, for a request with a layout, unchanged.
GivenSchedule file_schedule(const Request& request);

}  // namespace concertina
