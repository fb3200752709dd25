// `concertina plan search` without its command line: the layouts as one value, and as text.
// Invariant: the text says nothing that the value does not.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "parallel/predict/plan_candidate.h"

namespace concertina {

struct LayoutSearchOptions {
  int world = 1;
  std::string machine{};                       // a preset, or a machine file (*.toml); required
  std::optional<std::string> device_memory{};  // "40GiB"; none: the machine's `memory`
  double gflops = 0;  // of one rank's products; 0: the machine's flops_per_s
  std::string software = "concertina";
  int top = 10;
  double budget = 20e6;  // actions
  /// The values to try; an empty list is everything.
  std::vector<int> tp{}, pp{}, microbatch{}, chunks{};
  std::vector<std::string> schedules{}, recompute{};
  std::function<void(const std::string&)> progress{};
};

/// Returns the question of the search. Throws Error{bad_input} where a figure is missing.
PlanProblem search_problem(const RunConfig& config, const LayoutSearchOptions& options);

/// Layouts that are slower than the fastest one by at most this share of it are marked: no
/// published table was predicted well enough to tell them apart.
inline constexpr double kTie = 0.05;

/// Keys: compared (a list: what predictions for this machine were compared with, by MachineModel),
/// tie (kTie), parameters, world, machine, software (name, about), device_memory_bytes, candidates,
/// fitting, simulated, proven_worse, left_out (count, least_step_s), actions, budget,
/// peak_flops_per_s, model_flops, layouts and too_large (each: within_tie (of layouts: slower than
/// the first one by at most `tie` of it), tp, pp, dp, chunks, schedule, microbatch_samples,
/// microbatches (of a pipeline), layers (of each stage; empty where stages begin or end within a
/// layer), recompute, runs_here, keys (for `train`, where it runs here), plan_show_s (the step time
/// of `plan show`, null where the layout does not run here or is too large for that), step_s,
/// tokens_per_s, tflops_per_gpu (of hardware FLOPs), mfu, hfu (null where the peak rate is not
/// known), memory (total_bytes, weights_bytes, optimizer_bytes, activations_bytes, reserved_bytes,
/// margin_bytes (of the device, left free); exact: whether it is that of a run, to the byte, and
/// reserved_bytes)); of layouts also `parts` (seconds: compute, recompute, group, bubble, transfer,
/// reduction, update; they add up to the step) and help_most (part, seconds): the largest of these
/// but compute and update, and `memory`: what a layout would gain that needs at most twice of it.
/// Throws Error{bad_input} where memory or machine is missing, and where no layout fits: with the
/// nearest miss.
nlohmann::ordered_json search_report(const RunConfig& config, const LayoutSearchOptions& options);

std::string search_text(const nlohmann::ordered_json& report);

}  // namespace concertina
