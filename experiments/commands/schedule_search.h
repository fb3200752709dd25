// `concertina schedule search`: the best schedule for costs and a memory bound, over all the ways
// in which the registry's schedules fold a pipeline onto ranks.
// Invariant: pure and deterministic; what is found passes check() and is, by simulate(), never
// slower than the best named schedule within the bound.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/costs/schedule_costs.h"

namespace concertina {

struct ScheduleSearch {
  int ranks = 4, microbatches = 8;
  double memory = 0;  // activations a rank: microbatches of its share of the model; 0: any number
  std::uint64_t seed = 1;
};

struct FoundSchedule {
  Plan plan;
  Layout layout;  // one unit a stage
  /// Keys: makespan, bubble (mean, ranks), peak_activations (microbatch_stages), chunks, from (what
  /// it started with: a name, or "search"), named: a list of {schedule, chunks, makespan, share
  /// (most activations of a rank, in microbatches of its share), within}.
  nlohmann::ordered_json report;
};

/// Throws Error{bad_input} if nothing fits the bound.
FoundSchedule search_schedule(const ScheduleSearch& options, const ScheduleCosts& costs);

std::string search_table(const nlohmann::ordered_json& report);

}  // namespace concertina
