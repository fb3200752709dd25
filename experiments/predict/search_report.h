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

/// `compared` is MachineModel's; `layouts` fit, by step time, and `too_large` do not. Of each:
/// `layers` of each stage, empty where stages begin or end within a layer; `keys` for `train`, null
/// where it does not run here; `plan_show_s`, the step time of `plan show`, null also where that
/// takes long; TFLOP/s and HFU are of hardware FLOPs, MFU and HFU null where the peak rate is not
/// known; of `memory`, `margin_bytes` are left free, and `exact` is that of a run, to the byte. Of
/// layouts that fit also `parts`, which add up to the step, and `help_most`: the largest part but
/// compute and update, where `memory` is what twice of it would gain. Throws Error{bad_input} where
/// memory or machine is missing, and where no layout fits: with the nearest miss.
nlohmann::ordered_json search_report(const RunConfig& config, const LayoutSearchOptions& options);

std::string search_text(const nlohmann::ordered_json& report);

}  // namespace concertina
