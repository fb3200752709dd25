// List scheduling with real costs: in order of time, the rank whose choice can start first starts
// it; of equal ones, the first rank. Two families of rules choose: greedy ones prefer a kind of
// action, and steady ones follow the phases that Qi et al. 2024 (arXiv 2401.10241, section 3.1)
// describe for the span of ranks: a warm-up of as many F as fit, then F and I by turns, with W
// where a rank would wait anyway, or to make room; at the end what W are left. The code and its
// choices are ours. Invariants: an action starts after all that it needs has ended, so the rows
// cannot deadlock; a rank never keeps more than its bound; a rule that gets stuck under the bound
// gives none.
#pragma once

#include <optional>
#include <vector>

#include "parallel/generate/row_judge.h"

namespace concertina {

struct GreedyRule {
  enum class First { backward, forward, by_turns } first = First::backward;
  bool deep_forwards = true;  // of a rank's stages, the one nearest to the end goes first
  enum class Weights { at_once, when_idle, when_full } weights = Weights::when_idle;
  std::vector<int> most;  // activations, by rank; empty: any number
};

/// All combinations of the rule's choices, under `most` and under tighter bounds that fall from
/// rank to rank as those of 1F1B.
std::vector<GreedyRule> greedy_rules(const Layout& layout, const std::vector<int>& most);

struct SteadyRule {
  /// W goes first where the rank would wait at least so many times what W takes; and, if `spread`,
  /// where it would become the rank that has waited longest.
  double gap = 1;
  bool spread = true;
  /// In the warm-up an F starts even if the first I has to wait for its end.
  bool crowd = false;
  /// After the warm-up, who has no turn goes if it can start and the other cannot.
  bool any_turn = false;
};

/// All combinations of the rule's choices.
std::vector<SteadyRule> steady_rules();

/// Rows of F, I and W.
std::optional<std::vector<std::vector<Action>>> greedy_rows(const RowJudge& judge,
                                                            const GreedyRule& rule);

/// The same. `most`: what each rank may keep, in microbatches of stages; empty: any number.
/// `kept_for_weight`: see kept_peak().
std::optional<std::vector<std::vector<Action>>> steady_rows(const RowJudge& judge,
                                                            const SteadyRule& rule,
                                                            const std::vector<int>& most,
                                                            double kept_for_weight);

}  // namespace concertina
