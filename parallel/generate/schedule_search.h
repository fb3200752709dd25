// The best schedule for costs and a memory bound, over all the ways
// in which the registry's schedules fold a pipeline onto ranks.
// Every schedule is tried with every number of chunks that it has, up to a limit; moves start from
// the numbers that schedules want (Chunks::usual) and from that of the best one with a name.
// Invariant: pure and deterministic; what is found passes check() and is, by simulate() and the
// objective, never longer than the best named schedule within the bound, at any number of chunks
// that was tried.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/generate/row_judge.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

/// What a search is doing.
struct SearchProgress {
  std::string_view doing;  // a schedule's name, or "moves"
  int chunks = 1;
  double best = 0;  // by the objective, of what fits; infinity: nothing yet
};

struct ScheduleSearch {
  int ranks = 4, microbatches = 8;
  double memory = 0;  // activations a rank: microbatches of its share of the model; 0: any number
  std::uint64_t seed = 1;
  int max_chunks = 0;  // stages a rank; 0: kMaxChunks, or all that the units of a model allow; a
                       // file of costs has its own number
  std::optional<int> leaves{};        // of the gradient sum; else the default
  std::int64_t effort = 300'000'000;  // see SearchBounds; a few seconds for each way to fold
  Objective objective = Objective::step;
  /// What of a microbatch's activations its W still needs after its I: M_W / M_B of Qi et al. 2024
  /// (arXiv 2401.10241, table 1). `train` keeps all until W.
  double kept_for_weight = 1;
  /// Whether opposite pipelines may be found. `memory` counts activations alone, and they keep
  /// weights twice.
  bool opposite = false;
  double free_bytes = std::numeric_limits<double>::max();  // that proofs may take
  /// Asked often; false ends the search with the best so far, once there is one.
  std::function<bool(const SearchProgress&)> goes_on{};
};

/// The most chunks where no model says how many stages there can be.
constexpr int kMaxChunks = 8;

/// Costs of the plans that a search makes.
struct SearchCosts {
  /// Of a plan whose stages take `share` of a stage that is alone on its rank, with so many leaves
  /// of the gradient sum.
  std::function<Costs(const Layout& layout, const Plan& plan, double share, int leaves)> of;
  std::optional<int> units{};  // of a model: no layout has more stages
  std::optional<int> rows{};   // stages that the costs are of: a pipeline has as many
};

/// A schedule of the registry, with so many chunks.
struct ScheduleTry {
  std::string schedule;
  int chunks = 1;
  double makespan = 0, span = 0;  // seconds; span: the longest of a rank
  double share = 0;    // most activations of a rank, in microbatches of its share of the model
  double weights = 1;  // times that a rank keeps the weights of its share: 2 of opposite pipelines
  bool within = true;  // the bound on memory
};

struct FoundSchedule {
  Plan plan{};
  Layout layout{};  // one unit a stage
  Costs costs{};
  Timeline timeline{};
  double span = 0, share = 0, weights = 1;  // see ScheduleTry
  int chunks = 1;
  std::string from{};                // the name that it started with, or "search"
  std::vector<ScheduleTry> tries{};  // all that were tried, opposite pipelines among them
  int max_chunks = 1;
  bool stopped = false;  // by goes_on()
};

/// Throws Error{bad_input} if nothing fits the bound, or the model has fewer units than ranks.
FoundSchedule search_schedule(const ScheduleSearch& options, const SearchCosts& costs);

}  // namespace concertina
