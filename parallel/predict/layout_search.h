// The fastest layouts that fit a device's memory: enumerate, bound, simulate the most promising.
// Invariant: pure; the same problem, space and budget give the same answer. What was not simulated
// is counted, by reason.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "parallel/predict/candidate_model.h"

namespace concertina {

struct SearchBudget {
  int top = 10;           // layouts that are asked for
  double actions = 20e6;  // that simulations may take, all together
  /// Bytes of the fullest rank as they are, where that is known; instead of the model's.
  std::function<std::optional<double>(const PlanCandidate&)> exact_bytes{};
  /// Called now and then with what is being done.
  std::function<void(const std::string&)> progress{};
};

struct FoundLayout {
  PlanCandidate candidate;
  PlanMemory memory{};
  StepPrediction step{};  // of those that do not fit: `seconds` by the closed form alone
  bool simulated = false, exact = false;
  double again_flops = 0;     // of a step on all devices
  std::vector<int> layers{};  // of each stage; empty: stages begin or end within one
};

struct SearchOutcome {
  std::vector<FoundLayout> best;  // fits, by step time; all figures
  /// The two fastest, and the two that need least memory, of those that would be faster than the
  /// best that fits, with at most twice the memory; if nothing fits, those that need least. One of
  /// each depth, group and recomputation.
  std::vector<FoundLayout> too_large;
  /// The time of the fastest layout that needs at most twice the memory; infinity: none.
  double twice_seconds = std::numeric_limits<double>::infinity();
  std::size_t candidates = 0, fitting = 0;
  std::size_t simulated = 0;
  std::size_t unfit = 0;     // of these, as it turned out
  std::size_t worse = 0;     // by their bound
  std::size_t left_out = 0;  // the budget was used up
  double actions = 0;
  double least_left_out = 0;  // seconds: the bound of those left out; 0: none
};

SearchOutcome search_layouts(const PlanProblem& problem,
                             const std::vector<PlanCandidate>& candidates,
                             const SearchBudget& budget);

}  // namespace concertina
