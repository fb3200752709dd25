// What the program alone knows of a run for its page: its model, and its recorded steps beside
// their prediction. Invariant: it only reads.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/record/report_figures.h"
#include "experiments/record/run_trace.h"

namespace concertina {

/// `layer_ends`, `parameters` and `tokens_per_step` as far as this version knows the config; where
/// the run has a trace (the one that begins at `step`, or the last), also the measured and
/// predicted figures of its steps, by rank with memory over time, `pipelines`, and `timeline`.
/// Throws Error{bad_input} if there is no such run or trace, or a damaged one.
nlohmann::ordered_json recorded_figures(const std::string& directory,
                                        std::optional<std::int64_t> step);

/// The prediction and the measurement, as of timelines_json().
nlohmann::ordered_json recorded_timeline(const RunTrace& trace, const ReportFigures& figures);

}  // namespace concertina
