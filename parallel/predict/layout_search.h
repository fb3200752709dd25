// Finds the fastest layouts that fit a device's memory: enumerate, bound, simulate.
// Invariant: pure; the same problem, space and budget give the same answer. Layouts that were not
// simulated are counted, by reason.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "parallel/predict/candidate_model.h"

namespace concertina {

struct SearchBudget {
  int top = 10;           // number of layouts to find
  double actions = 20e6;  // maximum total number of simulated actions
  /// Returns the exact memory of the fullest rank if known; replaces the model's value.
  std::function<std::optional<double>(const PlanCandidate&)> exact_bytes{};
  /// Called occasionally with a description of the current work.
  std::function<void(const std::string&)> progress{};
};

struct FoundLayout {
  PlanCandidate candidate;
  PlanMemory memory{};
  StepPrediction step{};  // if the layout does not fit: only `seconds`, by the closed form
  bool simulated = false, exact = false;
  double recompute_flops = 0;  // per step, on all devices
  std::vector<int> layers{};   // by stage; empty: stages are split within a layer
};

struct SearchOutcome {
  std::vector<FoundLayout> best;  // layouts that fit, fastest first, with all values
  /// Of the layouts that would beat the best fitting one with at most twice the memory: the two
  /// fastest and the two that need the least memory. If nothing fits: those that need the least
  /// memory. One per pipeline depth, group size and recomputation.
  std::vector<FoundLayout> too_large;
  /// The time of the fastest layout that needs at most twice the memory; infinity: none.
  double twice_seconds = std::numeric_limits<double>::infinity();
  std::size_t candidates = 0, fitting = 0;
  std::size_t simulated = 0;
  std::size_t unfit = 0;     // simulated, but found not to fit
  std::size_t worse = 0;     // rejected by their bound
  std::size_t left_out = 0;  // skipped because the budget was exhausted
  double actions = 0;
  double least_left_out = 0;  // smallest bound of a skipped layout, in seconds; 0: none
};

SearchOutcome search_layouts(const PlanProblem& problem,
                             const std::vector<PlanCandidate>& candidates,
                             const SearchBudget& budget);

}  // namespace concertina
