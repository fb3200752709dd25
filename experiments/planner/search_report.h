// `concertina plan search` without its command line: the layouts as one value, and as text.
// Invariant: the text says nothing that the value does not.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

struct LayoutSearchOptions {
  int world = 1;
  std::string machine{};                       // a preset, or a machine file (*.toml); required
  std::optional<std::string> device_memory{};  // "40GiB"; none: the machine's `memory`
  double gflops = 0;  // of one rank's products; 0: the machine's flops_per_s
  std::string software = "concertina";
  int top = 10;
  double budget = 20e6;  // actions
  /// What is tried; an empty list is everything.
  std::vector<int> tp{}, pp{}, microbatch{}, chunks{};
  std::vector<std::string> schedules{}, recompute{};
  std::function<void(const std::string&)> progress{};
};

/// The mean error of predicted step times, over the timed rows of a published table: BLOOM's
/// (experiments/papers/bloom). Those of Megatron (experiments/papers/megatron-sc21) are -6.2% to
/// +4.7%. Layouts that differ by less cannot be told apart.
inline constexpr double kStepError = 0.065;

/// Keys: step_error (kStepError), world, machine, software (name, about), device_memory_bytes,
/// candidates, fitting, simulated, proven_worse, left_out (count, least_step_s), actions, budget,
/// peak_flops_per_s, model_flops, layouts and too_large (each: within_error (of layouts: slower
/// than the first one by at most step_error of it), tp, pp, dp, chunks, schedule,
/// microbatch_samples, microbatches (of a pipeline), recompute, runs_here, keys (for `train`, where
/// it runs here), step_s, tokens_per_s, tflops_per_gpu (of hardware FLOPs), mfu, hfu (null where
/// the peak rate is not known), memory (total_bytes, weights_bytes, optimizer_bytes,
/// activations_bytes, reserved_bytes; exact: whether it is that of a run, to the byte, and
/// reserved_bytes)); of layouts also `parts` (seconds: compute, recompute, group, bubble, transfer,
/// reduction, update; they add up to the step) and help_most (part, seconds): the largest of these
/// but compute and update, and `memory`: what a layout would gain that needs at most twice of it.
/// Throws Error{bad_input} where memory or machine is missing, and where no layout fits: with the
/// nearest miss.
nlohmann::ordered_json search_report(const RunConfig& config, const LayoutSearchOptions& options);

std::string search_text(const nlohmann::ordered_json& report);

}  // namespace concertina
