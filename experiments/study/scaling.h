// Scaling studies: one config at several numbers of ranks, measured where there are cores,
// predicted everywhere, and what the loss of efficiency is made of. Invariant: what is measured and
// what is predicted is kept apart in every figure; a prediction for N ranks never stands on the
// steps that N ranks were measured in.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/study/study_spec.h"
#include "parallel/predict/machine.h"

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

/// The parts of a step, in seconds. They add up to it.
struct StepParts {
  double compute = 0;    // mean of ranks
  double bubble = 0;     // the schedule's own, with equal stages and free messages
  double imbalance = 0;  // stages that differ
  double transfer = 0;   // activations and gradients between stages
  double reduction = 0;  // gradients between replicas
  double update = 0;     // loading, norms, optimizer, packing
  double variation = 0;  // equal actions that did not take equal time: of measurements alone
  double cores = 0;      // that ranks share: of predictions alone
  double total() const;
};
/// The name of each part in reports.
struct StepPart {
  const char* name;
  double StepParts::*seconds;
};
inline constexpr StepPart kStepParts[] = {
    {"compute", &StepParts::compute},     {"bubble", &StepParts::bubble},
    {"imbalance", &StepParts::imbalance}, {"transfer", &StepParts::transfer},
    {"reduction", &StepParts::reduction}, {"update", &StepParts::update},
    {"variation", &StepParts::variation}, {"cores", &StepParts::cores}};

struct Measured {
  std::vector<double> steps;  // seconds, of each round
  double median = 0;
  double load = 0;  // of the busiest host when they began, in processes that want to run
  StepParts parts;  // of the recorded steps, scaled to the median
};

struct ScalingResult {
  ScalingPoint point;
  std::string layout;
  std::optional<Measured> measured;
  StepParts predicted;
  std::string predicted_from;  // which measurement or file
  double flops = 0;            // of the model, a step
};

/// The results of all points. `runs`: directories of the measurements' runs, by point and round;
/// none for those that were not measured.
std::vector<ScalingResult> scaling_results(const RunConfig& config, const ScalingOptions& options,
                                           const std::vector<std::vector<std::string>>& runs);

/// A line through step seconds over microbatches, at one number of ranks: t = a + b m.
struct StepFit {
  int ranks = 1;
  double a = 0, b = 0;
  double error = 0;  // largest residual over its step
  bool measured = false;
};
std::vector<StepFit> step_fits(const std::vector<ScalingResult>& results);

/// Keys: mode, results (a list: ranks, layout, batch, microbatches, measured_ms, predicted_ms,
/// error, speedup, efficiency, parts ...), fits.
nlohmann::ordered_json scaling_json(const std::vector<ScalingResult>& results,
                                    const ScalingOptions& options);
std::string scaling_text(const nlohmann::ordered_json& report);

}  // namespace concertina
