// `concertina schedule search`: the best schedule for costs and a memory bound, over all the ways
// in which the registry's schedules fold a pipeline onto ranks.
// Every schedule is tried with every number of chunks that it has, up to a limit; moves start from
// the numbers that schedules want (Chunks::usual) and from that of the best one with a name.
// Invariant: pure and deterministic; what is found passes check() and is, by simulate(), never
// slower than the best named schedule within the bound, at any number of chunks that was tried.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "experiments/costs/schedule_costs.h"

namespace concertina {

struct ScheduleSearch {
  int ranks = 4, microbatches = 8;
  double memory = 0;  // activations a rank: microbatches of its share of the model; 0: any number
  std::uint64_t seed = 1;
  int max_chunks = 0;  // stages a rank; 0: kMaxChunks, or all that the units of a model allow
  std::optional<int> leaves{};        // of the gradient sum; else the default
  std::int64_t effort = 300'000'000;  // see SearchBounds; a few seconds for each way to fold
};

/// The most chunks where no model says how many stages there can be.
constexpr int kMaxChunks = 8;

struct FoundSchedule {
  Plan plan;
  Layout layout;  // one unit a stage
  /// Keys: makespan, bubble (mean, ranks), peak_activations (microbatch_stages), chunks, from (what
  /// it started with: a name, or "search"), links (see links_json()), max_chunks, named: a list of
  /// all that were tried, {schedule, chunks, makespan, share (most activations of a rank, in
  /// microbatches of its share), weights, within}; and weights: how many times a rank keeps the
  /// weights of its share: 2 for opposite pipelines, which `memory` does not count.
  nlohmann::ordered_json report;
};

/// Throws Error{bad_input} if nothing fits the bound, or the model has fewer units than ranks.
FoundSchedule search_schedule(const ScheduleSearch& options, const ScheduleCosts& costs);

/// One line a schedule: the best number of chunks of those tried.
std::string search_table(const nlohmann::ordered_json& report);

}  // namespace concertina
