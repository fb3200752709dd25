// List scheduling with real costs: in order of time, every idle rank takes what a rule prefers.
// Invariant: an action starts after all that it needs has ended, so the rows cannot deadlock; a
// rule that gets stuck under its memory bound gives none.
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

/// Rows of F, I and W.
std::optional<std::vector<std::vector<Action>>> greedy_rows(const RowJudge& judge,
                                                            const GreedyRule& rule);

}  // namespace concertina
