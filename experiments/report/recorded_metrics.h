// Data for a run's page that only the program can provide: the model, recorded and predicted steps.
// Invariant: only reads.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/record/report_metrics.h"
#include "experiments/record/run_trace.h"

namespace concertina {

/// Returns `layer_ends`, `parameters` and `tokens_per_step` if this version can read the config. If
/// the run has a trace (the one starting at `step`, or the last), also returns the measured and
/// predicted metrics of its steps, by rank and with memory over time, `pipelines` and `timeline`.
/// Throws Error{bad_input} if the run or trace is missing or damaged.
nlohmann::ordered_json recorded_metrics(const std::string& directory,
                                        std::optional<std::int64_t> step);

/// The predicted and the measured timeline, in the format of timelines_json().
nlohmann::ordered_json recorded_timeline(const RunTrace& trace, const ReportMetrics& metrics);

}  // namespace concertina
