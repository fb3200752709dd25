// List scheduling with real costs: in order of time, the rank whose choice can start first starts
// it; ties go to the lowest rank. There are two families of rules. Greedy rules prefer a kind of
// action. Steady rules follow the phases of Qi et al. 2024 (arXiv 2401.10241, section 3.1) for the
// span of ranks: a warm-up of as many Fs as fit, then F and I alternately, with W where a rank
// would wait or to free memory, and the remaining W at the end. The code and its options are ours.
// Invariants: an action starts after everything that it needs has ended, so the rows cannot
// deadlock; a rank never exceeds its memory bound; a rule that gets stuck returns nothing.
#pragma once

#include <optional>
#include <vector>

#include "parallel/generate/row_judge.h"

namespace concertina {

struct GreedyRule {
  enum class First { backward, forward, by_turns } first = First::backward;
  bool deep_forwards = true;  // whether the stage closest to the end of the pipeline goes first
  enum class Weights { at_once, when_idle, when_full } weights = Weights::when_idle;
  std::vector<int> most;  // stage activations by rank; empty: unlimited
};

/// Returns all combinations of options, under `most` and under tighter bounds that decrease from
/// rank to rank like those of 1F1B.
std::vector<GreedyRule> greedy_rules(const Layout& layout, const std::vector<int>& most);

struct SteadyRule {
  /// W goes first if the rank would wait for at least `gap` times the duration of W, or, with
  /// `spread`, if it would become the rank with the longest total wait.
  double gap = 1;
  bool spread = true;
  /// In the warm-up, an F starts even if it delays the first I.
  bool crowd = false;
  /// After the warm-up, a kind may run out of turn if it can start and the next one cannot.
  bool any_turn = false;
};

/// Returns all combinations of options.
std::vector<SteadyRule> steady_rules();

/// Returns rows of F, I and W, or nothing if the rule gets stuck.
std::optional<std::vector<std::vector<Action>>> greedy_rows(const RowJudge& judge,
                                                            const GreedyRule& rule);

/// Like greedy_rows(). `most` limits what each rank may keep, in stage activations (empty:
/// unlimited). `kept_for_weight` is as in kept_peak().
std::optional<std::vector<std::vector<Action>>> steady_rows(const RowJudge& judge,
                                                            const SteadyRule& rule,
                                                            const std::vector<int>& most,
                                                            double kept_for_weight);

}  // namespace concertina
