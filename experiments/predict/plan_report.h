// `concertina plan` without its command line: layout, memory and step time of a run that nobody
// has launched.
// Invariant: one process, any world size; the report is one value, and its text says nothing else.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "experiments/config/config.h"
#include "experiments/machine/machine.h"
#include "experiments/predict/link_source.h"
#include "experiments/predict/measured_costs.h"

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

/// Keys: layout (short form), layout_toml, world, threads, schedule, microbatches, leaves,
/// parameters, pipelines (stages with rank, units, unit_names, parameters, flops_share of the
/// pipeline), memory (ranks with equal figures, bytes by purpose), peak_bytes (of the largest
/// rank), all_ranks_bytes, checkpoint_copy_bytes and snapshot_bytes (of the largest rank, besides),
/// machine; rate_gflops_per_s and where it is from
/// and left_out, what comes on top of products (or costs_from, where units were measured), links
/// (see links_json()), step_ms,
/// tokens_per_s, busy_ms by rank, bubble (mean, ranks), peak_activations (microbatch_stages by
/// rank), recompute (largest_rank_bytes and step_ms for each word of parallel.recompute), warnings.
/// `machine`: what the memory is compared with, nothing if it is not known.
/// Throws Error{bad_input} if no layout fits the world size.
nlohmann::ordered_json plan_report(const RunConfig& config, const PlanOptions& options,
                                   const std::optional<MemoryBytes>& machine);

/// The text for a person: ranks with equal figures share a line.
std::string plan_text(const nlohmann::ordered_json& report);

}  // namespace concertina
