// Searches for the order of actions with the shortest step or rank span for given costs and
// memory. It has two phases, both on compute actions only. The first is list scheduling: in order
// of time, every idle rank takes the runnable action that a rule prefers, for all combinations of a
// few rules (priority of F, I and W; deep or shallow stages first; eagerness of W; limit on
// activations per rank). For the span, rules with a warm-up and a steady phase come first
// (list_rows.h). The second phase makes local moves from the best of these orders and the caller's
// candidates: an action moves up or down its row. Moves that do not increase the length are kept;
// some others are kept too, with decreasing probability (simulated annealing). A move is judged by
// a longest path through the rows, with a fixed time per message. The search ends at the lower
// bound (row_judge.h); the fewer the actions, the fewer the moves. Every stage keeps its
// microbatches in order. Invariants: pure and deterministic; by that measure the result is never
// longer than any candidate within the bound, and it cannot deadlock.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "parallel/generate/row_judge.h"

namespace concertina {

struct SearchBounds {
  /// Limit on each rank's stage activations between F and W or B; empty: unlimited.
  std::vector<int> peak_activations;
  /// The fraction of a microbatch that a rank keeps from I to W (kept_peak()).
  double kept_for_weight = 1;
  Objective objective = Objective::step;
  std::uint64_t seed = 1;
  /// Maximum number of actions examined by the rules, and again by the moves: bounds the search
  /// time regardless of the plan's size.
  std::int64_t effort = 20'000'000;
  /// Called occasionally with the smallest length so far (infinity: none yet). Returning false ends
  /// the search with the best plan so far.
  std::function<bool(double)> keep_searching{};
};

struct SearchResult {
  Plan plan;  // compute actions only: F, I, W
  /// Its length in seconds (a longest path; see Objective); infinity if nothing fits.
  double seconds = std::numeric_limits<double>::infinity();
};

/// `candidates` contain compute actions of `layout` only; those beyond the bound are ignored.
SearchResult search(const Layout& layout, const Costs& costs, const std::vector<Plan>& candidates,
                    const SearchBounds& bounds);

/// Returns the compute actions of the registered schedules that run on `layout`, except search.
std::vector<Plan> named_plans(const Layout& layout);

}  // namespace concertina
