// Turns a request into a proven Assignment: layout, plan, owners.
// Invariant: pure; the same on every rank, and independent of whether the ranks exist.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/generate/fit_schedule.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/assignment.h"

namespace concertina {

/// A requested assignment: the keys of [parallel], and the decisions of the run. Missing values are
/// derived from the others.
struct Request {
  int world = 1;
  int spare = 0;                   // ranks without a stage: the last ones, unless `layout` differs
  int frozen_units = 0;            // units [0, frozen_units) only run forward
  int batches = 1;                 // trained on together in one step (Assignment::batches)
  int pp = 0, dp = 0, chunks = 0;  // 0: derived
  Layout layout{};                 // replaces pp, dp and chunks
  std::string schedule = "1f1b";   // name in the registry
  std::optional<ScheduleFile> file{};  // replaces `schedule`
  std::string partition = "balanced";
  bool overlap = false;
  ExchangeChoice exchange{};
  std::vector<double> unit_costs{};  // balanced by `partition`; empty: FLOPs of the passes that run
};

/// Throws Error{bad_input} with the config key if model, layout and world do not match.
Assignment assign(const Job& job, const Request& request);
/// The same for a job with unit costs that differ from those of `like`, an assignment for the
/// same request. Reuses the plan of `like` if the layout is the same.
Assignment assign_like(const Job& job, const Request& request, Assignment like);

/// Minimum number of ranks for `request`, including spare ones; 1 if it implies no number.
int ranks_asked(const Request& request);

/// How a replica of the request folds onto its ranks. Not valid for a request with a file.
Folding folding_of(const Request& request);

}  // namespace concertina
