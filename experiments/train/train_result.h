// The end of `train`: costs.json, result.json, the final output. Invariant: on rank 0, after the
// last checkpoint; an optional file that cannot be written causes only a warning.
#pragma once

#include <optional>
#include <string>

#include "experiments/record/launch_metrics.h"
#include "experiments/record/run_trace.h"
#include "experiments/train/train_launch.h"
#include "parallel/predict/cost_record.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// The model FLOPs utilization of a step that takes `seconds`, if the peak rate is known.
MetricValue model_flops_utilization(const Launch& launch, double seconds);

/// Logs how the leader's kernels were launched, if that can vary.
void log_passes(const Backend& backend);

/// Writes costs.json: the times of this launch's steps, for predictions. `cache_read`:
/// MachineModel::cache_read_s_per_byte. Collective.
void save_costs(TrainLaunch& launch, CostRecord& record, const MoveRates& moves, double cache_read);

/// Writes result.json. After a launch that trained nothing, keeps the values of the last step.
/// Tries twice; if both fail, the error says that the run itself is complete.
void save_result(const TrainLaunch& launch, const LaunchMetrics& metrics,
                 const LaunchSummary& summary, const std::string& hash,
                 const std::optional<RunTrace>& trace);

/// The final text for stdout. `text`: the generated text, which may be empty.
std::string closing_words(const TrainLaunch& launch, const LaunchMetrics& metrics,
                          const LaunchSummary& summary, const std::string& text);

}  // namespace concertina
