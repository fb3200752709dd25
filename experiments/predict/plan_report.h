// `concertina plan` without its command line: layout, memory and step time of a hypothetical run,
// the gain from freezing, and the data moved when its layout changes. Invariant: one process, any
// world size; a report is one value, and its text contains nothing else.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/config/config.h"
#include "experiments/machine/machine.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/predict/report_parts.h"

namespace concertina {

struct PlanOptions {
  int world = 1;
  double gflops = 0;    // per rank; 0: measured
  std::string costs{};  // a run with costs.json, or a machine file; empty: matrix products only
  std::string links{};  // likewise; its links replace those in `costs`
};

/// The costs on which a plan's prediction is based.
struct PlanSource {
  std::vector<UnitSeconds> units;  // frozen as in the assignment
  MachineModel machine;
  LinkSource links;
  nlohmann::ordered_json facts;  // costs_from, or rate_gflops_per_s, rate_from and left_out
};
/// Measured unit times, or times of the units' products at one rate; links and updates if known.
PlanSource plan_source(const Job& job, const Assignment& assignment, const RunConfig& config,
                       const PlanOptions& options, int threads);

/// The report of `plan show`. `memory` groups ranks with equal values; `peak_bytes` is for the
/// largest rank, as are the additional `checkpoint_copy_bytes` and `snapshot_bytes`; `left_out`
/// lists what times at `rate_gflops_per_s` do not include, and `costs_from` replaces both if units
/// were measured; for `links`, see links_json(). `machine`: the memory to compare with, nullopt if
/// unknown. Throws Error{bad_input} if no layout fits the world size.
nlohmann::ordered_json plan_report(const RunConfig& config, const PlanOptions& options,
                                   const std::optional<MemoryBytes>& machine);

/// The human-readable text: ranks with equal values share a line.
std::string plan_text(const nlohmann::ordered_json& report);

/// `plan freeze`: the gain from freezing, part by part (course_report.cc).
struct CourseOptions {
  int epochs = 10;
  std::int64_t samples = 0;                            // per epoch; 0: as in data.text
  std::function<void(const std::string&)> progress{};  // called with the name of the next part
};

/// `course` has an entry per epoch, for the config's [elastic] and [cache]; its `change_s` is null
/// if no links are known. `ladder` has an entry per rung: its keys, set on top of the config;
/// `unfrozen_epochs`, the number of epochs with as much work as the whole run; and, except for
/// `static`, the ceilings of `over_static` and `over_best`, without waits, transfers or reads.
/// Throws Error{bad_input} if the policy cannot be predicted or there are no samples.
nlohmann::ordered_json course_report(RunConfig config, const PlanOptions& plan,
                                     const CourseOptions& options);

std::string course_text(const nlohmann::ordered_json& report);

/// `plan move`: the data moved when the layout changes (move_report.cc). `moved_bytes` is the total
/// between ranks; `state_bytes` is the state of the largest rank before and after; `extra_bytes` is
/// the most that any rank needs beyond the larger of its two states; `seconds`, for the slowest
/// rank, is present if `options` names a machine. `from` and `to`: keys for with_layout_keys(), on
/// top of `config`; empty: the config's layout.
nlohmann::ordered_json move_report(const RunConfig& config, const PlanOptions& options,
                                   const std::string& from, const std::string& to);

std::string move_text(const nlohmann::ordered_json& report);

}  // namespace concertina
