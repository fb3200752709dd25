// `concertina plan search` without its command line: the layouts as one value, and as text.
// Invariant: the text contains nothing that the value does not.
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
  std::string machine{};                       // a preset or a machine file (*.toml); required
  std::optional<std::string> device_memory{};  // "40GiB"; nullopt: the machine's `memory`
  double gflops = 0;  // rate of matrix products per rank; 0: the machine's flops_per_s
  std::string software = "concertina";
  int top = 10;
  double budget = 20e6;  // simulated actions
  /// The values to try; an empty list means all.
  std::vector<int> tp{}, pp{}, microbatch{}, chunks{};
  std::vector<std::string> schedules{}, recompute{};
  std::function<void(const std::string&)> progress{};
};

/// Returns the input of the search. Throws Error{bad_input} if a number is missing.
PlanProblem search_problem(const RunConfig& config, const LayoutSearchOptions& options);

/// Layouts that are slower than the fastest by at most this fraction are marked, because no
/// published table was predicted accurately enough to tell them apart.
inline constexpr double kTie = 0.05;

/// `compared` is MachineModel's; `layouts` fit and are ordered by step time, with those that run in
/// Concertina first; `too_large` do not fit. Each layout has `layers` per stage, empty if stages
/// begin or end within a layer; `keys` for `train`, null if it cannot run in Concertina;
/// `plan_show_s`, the step time of `plan show`, also null if that is slow to compute; TFLOP/s and
/// HFU by hardware FLOPs, MFU and HFU null if the peak rate is unknown; in `memory`, `margin_bytes`
/// are left free, and `exact` means accurate to the byte. Layouts that fit also have `parts`, which
/// add up to the step, and `help_most`: the largest part except compute and update, where `memory`
/// is the gain from twice the memory. Throws Error{bad_input} if the memory or machine is missing,
/// or if no layout fits; the error then names the nearest layout.
nlohmann::ordered_json search_report(const RunConfig& config, const LayoutSearchOptions& options);

std::string search_text(const nlohmann::ordered_json& report);

}  // namespace concertina
