// Searches for the order of actions with the shortest step, or span of a rank, for given costs and
// memory. Two stages, both on compute actions alone. First, list scheduling: in order of time every
// idle rank takes what a rule prefers of what can run, for all combinations of a few rules (who
// goes first of F, I and W; deep or shallow stages first; how eager W is; how many activations a
// rank may keep); for the span, rules of a warm-up and a steady phase come first (list_rows.h).
// Then local moves from the best of these and of the candidates that the caller has: an action goes
// some places up or down its row; moves that make nothing longer stay, some that do stay as well,
// fewer and fewer (simulated annealing). A move is judged by a longest path through the rows, with
// a fixed time for each message. The search ends where nothing can be shorter (row_judge.h), and
// few actions get few moves. Every stage keeps its microbatches in order. Invariants: pure and
// deterministic; what comes out is never longer, by that judgement, than any candidate within the
// bound, and cannot deadlock.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "parallel/generate/row_judge.h"

namespace concertina {

struct SearchBounds {
  /// Microbatches of stages that a rank may keep between F and W or B, by rank; empty: any number.
  std::vector<int> peak_activations;
  /// How much of a microbatch a rank keeps from I to W (kept_peak()).
  double kept_for_weight = 1;
  Objective objective = Objective::step;
  std::uint64_t seed = 1;
  /// Actions looked at, by the rules and again by the moves: the most time of the search, whatever
  /// the size of the plan.
  std::int64_t effort = 20'000'000;
  /// Asked now and then, with the least length so far (infinity: none yet); false ends the search
  /// with what it has.
  std::function<bool(double)> goes_on{};
};

struct SearchResult {
  Plan plan;  // compute actions only: F, I, W
  /// Its length by the longest path, of what the objective says; infinity if nothing fits the
  /// bound.
  double seconds = std::numeric_limits<double>::infinity();
};

/// `candidates`: compute actions only, of `layout`; those beyond the bound are left out.
SearchResult search(const Layout& layout, const Costs& costs, const std::vector<Plan>& candidates,
                    const SearchBounds& bounds);

/// The computations of the registry's schedules on `layout`, of those that run on it, but for
/// search itself.
std::vector<Plan> named_plans(const Layout& layout);

}  // namespace concertina
