// The rules of check(), one function each. Internal to check().
// Invariant: a rule may rely on the preceding ones in the list of check.cc.
#pragma once

#include <optional>

#include "parallel/plan/check.h"
#include "parallel/plan/plan_index.h"

namespace concertina {

using Found = std::optional<Violation>;

/// The plan as seen by a rule.
struct Checked {
  const Plan& plan;
  const Limits& limits;
  const PlanIndex& index;

  int ranks() const { return static_cast<int>(plan.rows.size()); }
  const Action& action(int node) const;
  /// Returns text such as "rank 1 action 3 1F0".
  std::string name(int node) const;
  Violation violation(Rule rule, std::string text, std::initializer_list<int> nodes) const;
};

/// Returns the violation that `action` is missing from row `rank`, with its expected position.
Violation missing(const Plan& plan, int rank, const Action& action);

/// Checks each action separately: it exists, is expected, is on the right rank and not repeated.
Found check_actions(const Checked& it);
/// Checks that no action is missing or superfluous.
Found check_cover(const Checked& it);
/// Checks that each overlapped F has a partner that does not depend on it. A partner of the same
/// microbatch would: forwards of all stages precede the first backward.
Found check_overlaps(const Checked& it);
/// Checks that an action follows everything in its own row that it needs.
Found check_dependencies(const Checked& it);
/// Checks that REDUCE follows all gradients of its stage. It may be inside a row, as in PyTorch's
/// files, because the executor waits only at STEP, which ends a row.
Found check_reduction(const Checked& it);
/// Channels have no tags: the k-th SEND from one rank to another matches its k-th RECV.
Found check_channels(const Checked& it);
Found check_leaves(const Checked& it);
Found check_memory(const Checked& it);
Found check_deadlock(const Checked& it);

}  // namespace concertina
