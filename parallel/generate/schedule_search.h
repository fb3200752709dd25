// Finds the best schedule for given costs and a given memory bound, over all foldings of a pipeline
// that registered schedules use.
// Every schedule is tried with every supported number of chunks, up to a limit. Local moves start
// from the default number (Chunks::default_value) and from that of the best named schedule.
// Invariant: pure and deterministic; the result passes check() and, according to simulate() and the
// objective, is never longer than the best named schedule within the bound, at any tried number of
// chunks.
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

/// Progress of a search.
struct SearchProgress {
  std::string_view doing;  // name of a schedule, or "moves"
  int chunks = 1;
  double best = 0;  // shortest length of a plan that fits; infinity: none yet
};

struct ScheduleSearch {
  int ranks = 4, microbatches = 8;
  double memory = 0;  // activations per rank, in microbatches of its share of the model; 0:
                      // unlimited
  std::uint64_t seed = 1;
  int max_chunks = 0;  // stages per rank; 0: kMaxChunks, or as many as the model's units allow;
                       // ignored for a cost file
  std::optional<int> leaves{};        // leaves of the gradient sum; empty: the default
  std::int64_t effort = 300'000'000;  // see SearchBounds; a few seconds per folding
  Objective objective = Objective::step;
  /// The fraction of a microbatch's activations that W still needs after I: M_W / M_B of Qi et al.
  /// 2024 (arXiv 2401.10241, table 1). `train` keeps everything until W.
  double kept_for_weight = 1;
  /// Whether the search may return opposite pipelines. They keep two copies of the weights, but
  /// `memory` only limits activations.
  bool opposite = false;
  double free_bytes = std::numeric_limits<double>::max();  // available for proofs
  /// Called often; returning false ends the search with the best plan so far, once there is one.
  std::function<bool(const SearchProgress&)> keep_searching{};
};

/// Maximum number of chunks if no model limits the stages.
constexpr int kMaxChunks = 8;

/// Costs of the plans that a search creates.
struct SearchCosts {
  /// Returns the costs of a plan whose stages each take `share` of the time of a rank's only stage.
  std::function<Costs(const Layout& layout, const Plan& plan, double share, int leaves)> of;
  std::optional<int> units{};  // units in the model: the maximum number of stages
  std::optional<int> rows{};   // stages in each pipeline, if their costs are given
};

/// A registered schedule that was tried with a given number of chunks.
struct ScheduleTry {
  std::string schedule;
  int chunks = 1;
  double makespan = 0, span = 0;  // seconds; span: the longest of any rank
  double share = 0;    // peak activations of a rank, in microbatches of its share of the model
  double weights = 1;  // copies of its share of the weights per rank: 2 with opposite pipelines
  bool within = true;  // whether it meets the memory bound
};

struct FoundSchedule {
  Plan plan{};
  Layout layout{};  // one unit per stage
  Costs costs{};
  Timeline timeline{};
  double span = 0, share = 0, weights = 1;  // see ScheduleTry
  int chunks = 1;
  std::string from{};                // name of the initial schedule, or "search"
  std::vector<ScheduleTry> tries{};  // everything that was tried, including opposite pipelines
  int max_chunks = 1;
  bool stopped = false;  // by keep_searching()
};

/// Throws Error{bad_input} if nothing fits the bound, or if the model has fewer units than ranks.
FoundSchedule search_schedule(const ScheduleSearch& options, const SearchCosts& costs);

}  // namespace concertina
