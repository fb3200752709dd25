// Scaling studies: one config at several numbers of ranks, measured where there are cores and
// predicted everywhere. The report on both is Python's (commands/study_scaling.py). Invariant: a
// prediction for N ranks never stands on the steps that N ranks were measured in.
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
  bool weak = false;              // the batch grows with the ranks; else it is the config's
  bool grows_pipeline = false;    // of pp and dp, pp grows with the ranks; else dp does
  std::vector<int> microbatches;  // further numbers of them, for the fit; empty: the config's alone
  int rounds = 3;                 // launches of each number of ranks, by turns
  int measured = 0;               // numbers of ranks up to this one are launched; 0: none
  int threads = 1;                // of each rank
  int cores = 0;                  // of a host, for ranks that share them: as many have their own
  int ranks_per_host = 0;         // in measurements; 0: all on one host
  std::string links{};            // a machine file, or a run, for what is not measured
  LaunchSection launch{};
};

/// One point of the study: so many ranks, and what follows for the config.
struct ScalingPoint {
  int ranks = 1, pp = 1, dp = 1, global = 1, microbatches = 1;
};
/// Points by ranks, then by microbatches; the config's own microbatches come first of each. Throws
/// Error{bad_input} where the config's pp or dp do not divide the ranks.
std::vector<ScalingPoint> scaling_points(const RunConfig& config, const ScalingOptions& options);
/// `config` at a point.
RunConfig config_at(RunConfig config, const ScalingPoint& point);

/// Throws Error{bad_input} at the first point that has no layout.
void require_layouts(const RunConfig& config, const ScalingOptions& options);

/// The study file that measures `points`, those up to options.measured.
std::string scaling_toml(const RunConfig& config, const ScalingOptions& options);

/// A prediction for each point, as a list of objects: ranks, layout, batch, microbatches; flops of
/// the model in a step; predicted_from, the run whose measured costs it stands on; predicted_parts,
/// the seconds of a step by what they are spent on, which add up to it. `runs`: directories of the
/// measured runs, by point and round. Throws a failure if none of them has costs.
nlohmann::ordered_json scaling_predictions(const RunConfig& config, const ScalingOptions& options,
                                           const std::vector<std::vector<std::string>>& runs);

}  // namespace concertina
