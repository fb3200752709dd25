// `concertina plan` without its command line: layout, memory and step time of a run that nobody
// has launched, what freezing would give it and what a change of its layout would move.
// Invariant: one process, any world size; a report is one value, and its text says nothing else.
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
  double gflops = 0;    // of one rank; 0: measured
  std::string costs{};  // a run with costs.json, or a machine file; empty: products alone
  std::string links{};  // the same, in place of the links of `costs`
};

/// The figures that a plan is predicted from.
struct PlanSource {
  std::vector<UnitSeconds> units;  // as far as they train in the assignment
  MachineModel machine;
  LinkSource links;
  nlohmann::ordered_json facts;  // costs_from, or rate_gflops_per_s, rate_from and left_out
};
/// Units as measured, or their products at one rate; links and updates as far as they are known.
PlanSource plan_source(const Job& job, const Assignment& assignment, const RunConfig& config,
                       const PlanOptions& options, int threads);

/// The report of `plan show`. `memory` has ranks with equal figures; `peak_bytes` is of the largest
/// rank, as are `checkpoint_copy_bytes` and `snapshot_bytes`, which come on top; `left_out` comes
/// on top of products at `rate_gflops_per_s`, and instead of both there is `costs_from` where units
/// were measured; for `links` see links_json(). `machine`: what the memory is compared with,
/// nothing if it is not known. Throws Error{bad_input} if no layout fits the world size.
nlohmann::ordered_json plan_report(const RunConfig& config, const PlanOptions& options,
                                   const std::optional<MemoryBytes>& machine);

/// The text for a person: ranks with equal figures share a line.
std::string plan_text(const nlohmann::ordered_json& report);

/// `plan freeze`: what freezing gives, part by part (course_report.cc).
struct CourseOptions {
  int epochs = 10;
  std::int64_t samples = 0;                            // of an epoch; 0: those of data.text
  std::function<void(const std::string&)> progress{};  // told what comes next
};

/// `course` is by epoch, with the config's own [elastic] and [cache]; its `change_s` is null where
/// no links are known. `ladder` is by rung: the keys that make it, on top of the config;
/// `unfrozen_epochs`, which cost as much work as the whole run; and, but for `static`, the ceilings
/// of `over_static` and `over_best`, where nothing waits, moves or reads. Throws Error{bad_input}
/// where the policy cannot be foreseen or there are no samples.
nlohmann::ordered_json course_report(RunConfig config, const PlanOptions& plan,
                                     const CourseOptions& options);

std::string course_text(const nlohmann::ordered_json& report);

/// `plan move`: what a change of the layout would move (move_report.cc).
/// `moved_bytes` is between ranks, in all; `state_bytes` of the largest rank, before and after;
/// `extra_bytes` the most of any rank besides the larger of its states; `seconds`, of the slowest
/// rank, are there where `options` name a machine. `from` and `to`: keys as with_layout_keys()
/// takes them, on top of `config`; empty: the config's own layout.
nlohmann::ordered_json move_report(const RunConfig& config, const PlanOptions& options,
                                   const std::string& from, const std::string& to);

std::string move_text(const nlohmann::ordered_json& report);

}  // namespace concertina
