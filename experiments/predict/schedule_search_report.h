// `concertina schedule search` without its command line: the result as one value, and as text.
// Invariant: the text contains nothing that the value does not.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/predict/schedule_costs.h"
#include "parallel/generate/schedule_search.h"

namespace concertina {

struct SearchedSchedule {
  Plan plan;
  Layout layout;  // one unit per stage
  /// Keys: objective (step, span), makespan, span (maximum over ranks), bubble (mean, ranks,
  /// definitions), peak_activations (microbatch_stages; share: the maximum over ranks, in
  /// microbatches of a rank's share of the model, with kept_for_weight), chunks, weights (see
  /// ScheduleTry), from (the initial schedule: a name, or "search"), links (see links_json()),
  /// max_chunks, opposite, stopped (whether keep_searching() ended it), named (ScheduleTry list).
  nlohmann::ordered_json report;
};

/// Throws the same errors as the search_schedule() that it calls.
SearchedSchedule search_schedule(const ScheduleSearch& options, const ScheduleCosts& costs);

/// One line per schedule, with the best number of chunks tried.
std::string search_table(const nlohmann::ordered_json& report);

}  // namespace concertina
