// A part of a plan for people: one row per rank, the actions around some places, these marked.
// Invariant: a few lines, however large the plan.
#pragma once

#include <string>
#include <vector>

#include "core/error.h"
#include "parallel/plan/check.h"

namespace concertina {

/// Rows of the ranks that have a place (of small plans: all ranks), with the actions around the
/// places from left to right, the places in brackets; "..9:" leaves out what is before action 9 of
/// the row. An action that is missing stands where it belongs, as [+0F1]. Empty without either.
std::string grid_around(const Plan& plan, const std::vector<Place>& places,
                        const std::optional<Gap>& gap = {});

/// A plan that breaks a rule; its message has the counter-example and the grid around the place,
/// and its fix is what the rule advises.
class RefusedPlan : public Error {
 public:
  /// `who` comes before what is wrong.
  RefusedPlan(Plan plan, Violation violation, const std::string& who, std::string where);

  const Plan& plan() const { return plan_; }
  const Violation& violation() const { return violation_; }

 private:
  Plan plan_;
  Violation violation_;
};

}  // namespace concertina
