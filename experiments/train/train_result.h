// The end of `train`: costs.json, result.json, the closing words.
// Invariant: on rank 0, after the last checkpoint; a file that cannot be written is a warning where
// the run is whole without it.
#pragma once

#include <optional>
#include <string>

#include "experiments/record/launch_figures.h"
#include "experiments/record/run_trace.h"
#include "experiments/train/train_launch.h"
#include "parallel/predict/cost_record.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// The model FLOPs utilization of a step of `seconds`, where the peak rate is known.
Figure model_flops_utilization(const Launch& launch, double seconds);

/// How the leader's kernels were issued, where that can differ.
void log_passes(const Backend& backend);

/// costs.json: what this launch's steps took, for predictions. `cache_read`:
/// MachineModel::cache_read_s_per_byte. Collective.
void save_costs(TrainLaunch& launch, CostRecord& record, const MoveRates& moves, double cache_read);

/// result.json. A launch that trained nothing leaves that of the last step as it was. Tries twice;
/// what it throws then says that the run itself is whole.
void save_result(const TrainLaunch& launch, const LaunchFigures& figures,
                 const LaunchSummary& summary, const std::string& hash,
                 const std::optional<RunTrace>& trace);

/// The words for stdout; `text` was generated, or is empty.
std::string closing_words(const TrainLaunch& launch, const LaunchFigures& figures,
                          const LaunchSummary& summary, const std::string& text);

}  // namespace concertina
