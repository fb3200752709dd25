// `concertina schedule search` without its command line: what was found as one value, and as text.
// Invariant: the text says nothing that the value does not.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/predict/schedule_costs.h"
#include "parallel/generate/schedule_search.h"

namespace concertina {

struct SearchedSchedule {
  Plan plan;
  Layout layout;  // one unit a stage
  /// Keys: objective (step, span), makespan, span (the longest of a rank), bubble (mean, ranks,
  /// definitions), peak_activations (microbatch_stages; share: most of a rank, in microbatches of
  /// its share, with kept_for_weight), chunks, weights (see ScheduleTry), from (what it started
  /// with: a name, or "search"), links (see links_json()), max_chunks, opposite, stopped (whether
  /// goes_on() ended it), named: a list of ScheduleTry by its fields.
  nlohmann::ordered_json report;
};

/// Throws as the pure search does.
SearchedSchedule search_schedule(const ScheduleSearch& options, const ScheduleCosts& costs);

/// One line a schedule: the best number of chunks of those tried.
std::string search_table(const nlohmann::ordered_json& report);

}  // namespace concertina
