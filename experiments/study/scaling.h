// Scaling studies: one config with several numbers of ranks, all predicted, and measured up to the
// number of cores. Python writes the report (commands/study_scaling.py). Invariant: a prediction
// for N ranks never uses steps measured with N ranks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/study/study_spec.h"

namespace concertina {

struct ScalingOptions {
  std::string name = "scaling";
  std::vector<int> ranks;         // ascending
  bool weak = false;              // the batch grows with the ranks
  bool grows_pipeline = false;    // pp grows with the ranks instead of dp
  std::vector<int> microbatches;  // additional numbers of microbatches, for the fit
  int rounds = 3;                 // interleaved launches per number of ranks
  int measured = 0;               // largest number of ranks to launch
  int threads = 1;                // per rank
  int cores = 0;                  // per host, for ranks that share them
  int ranks_per_host = 0;         // in measurements; 0: one host
  std::string links{};            // machine file or run, for links that were not measured
  LaunchSection launch{};
};

/// One point of the study: a number of ranks and the config values that depend on it.
struct ScalingPoint {
  int ranks = 1, pp = 1, dp = 1, global = 1, microbatches = 1;
};
/// Returns points sorted by ranks, then by microbatches, with the config's microbatches first.
/// Throws Error{bad_input} if the config's pp or dp does not divide the number of ranks.
std::vector<ScalingPoint> scaling_points(const RunConfig& config, const ScalingOptions& options);
/// Returns the config at a point.
RunConfig config_at(RunConfig config, const ScalingPoint& point);

/// Throws Error{bad_input} for the first point without a layout.
void require_layouts(const RunConfig& config, const ScalingOptions& options);

/// The study file that measures the points with at most options.measured ranks.
std::string scaling_toml(const RunConfig& config, const ScalingOptions& options);

/// Predicts each point. Returns a list of objects: ranks, layout, batch, microbatches; the model's
/// flops per step; predicted_from, the run whose measured costs were used; predicted_parts, the
/// step time in seconds, split by activity. `runs`: directories of the measured runs, by point and
/// round. Throws Error{failure} if none of these runs has measured costs.
nlohmann::ordered_json scaling_predictions(const RunConfig& config, const ScalingOptions& options,
                                           const std::vector<std::vector<std::string>>& runs);

}  // namespace concertina
