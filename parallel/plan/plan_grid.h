// A human-readable excerpt of a plan: one row per rank, with some actions marked.
// Invariant: a few lines, however large the plan.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "parallel/plan/check.h"

namespace concertina {

/// Draws the rows that contain a marked action (all rows of a small plan) around the marks. Marked
/// actions are in brackets. "..9:" means that actions before action 9 are omitted. A missing action
/// is drawn where it belongs, as [+0F1]. Returns "" if there are neither marks nor a gap.
std::string grid_around(const Plan& plan, const std::vector<Place>& places,
                        const std::optional<Gap>& gap = {});

/// Reports a plan that breaks a rule. The message contains the counter-example and an excerpt of
/// the plan; the fix is the rule's advice.
class RefusedPlan : public Error {
 public:
  /// `who` precedes the description of the error.
  RefusedPlan(Plan plan, Violation violation, const std::string& who, std::string where);

  const Plan& plan() const { return plan_; }
  const Violation& violation() const { return violation_; }

 private:
  Plan plan_;
  Violation violation_;
};

}  // namespace concertina
