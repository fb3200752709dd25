// What result.json says beside the figures of its steps (experiments/record/launch_figures.h).
// Invariant: of rank 0 alone, after the last step and costs.json.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/launch/launch.h"
#include "experiments/record/run_trace.h"

namespace concertina {

/// Keys: predicted_step_ms and predicted_bubble, as the report has them for the typical recorded
/// step, without a trace from costs.json alone; recorded, where there is a trace: first_step,
/// steps, median_step_ms (from the first rank's start to the last one's end), bubble, bubble_causes
/// (shares of the step that add up to it), means over ranks.
nlohmann::ordered_json predicted_figures(const Launch& launch, const std::string& directory,
                                         const std::optional<RunTrace>& trace);

/// Keys: parameters, layout, ranks, schedule, microbatches, batch (samples of the last update),
/// device, compute, seed.
nlohmann::ordered_json about_run(const Launch& launch);

}  // namespace concertina
