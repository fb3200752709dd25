// The rules of check(), a function each. Internal to it.
// Invariant: a rule may rely on those before it in check.cc's list.
#pragma once

#include <optional>

#include "parallel/plan/check.h"
#include "parallel/plan/plan_index.h"

namespace concertina {

using Found = std::optional<Violation>;

/// The view of a rule.
struct Checked {
  const Plan& plan;
  const Limits& limits;
  const PlanIndex& index;

  int ranks() const { return static_cast<int>(plan.rows.size()); }
  const Action& action(int node) const;
  /// "rank 1 action 3 1F0"
  std::string name(int node) const;
  Violation violation(Rule rule, std::string text, std::initializer_list<int> nodes) const;
};

/// `action`, which is due in the row of `rank`, is not there; with the place where it belongs.
Violation missing(const Plan& plan, int rank, const Action& action);

/// Each action by itself: it exists, is due, is on the right rank, and is there once.
Found check_actions(const Checked& it);
/// Nothing is missing, and nothing is there that nobody needs.
Found check_cover(const Checked& it);
/// An overlapped F has a partner that does not need it. Of one microbatch, it would: forwards of
/// all stages come before the first backward.
Found check_overlaps(const Checked& it);
/// All that an action needs from its own row stands before it.
Found check_dependencies(const Checked& it);
/// REDUCE comes after all gradients of its stage. It may stand inside a row, as in PyTorch's
/// files, since the executor never waits there: STEP does, which ends a row.
Found check_reduction(const Checked& it);
/// Channels have no tags: the k-th SEND from one rank to another meets the k-th RECV.
Found check_channels(const Checked& it);
Found check_leaves(const Checked& it);
Found check_memory(const Checked& it);
Found check_deadlock(const Checked& it);

}  // namespace concertina
