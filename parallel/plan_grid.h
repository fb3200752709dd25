// A part of a plan for people: a row a rank, the actions around some places, these marked.
// Invariant: a few lines, however large the plan.
#pragma once

#include <string>
#include <vector>

#include "parallel/check.h"

namespace concertina {

/// Rows of the ranks that have a place (of small plans: all ranks), with the actions around the
/// places from left to right, the places in brackets; "..9:" leaves out what is before action 9 of
/// the row. Empty without places.
std::string grid_around(const Plan& plan, const std::vector<Place>& places);

/// What is wrong, and the grid around it.
std::string explain(const Plan& plan, const Violation& violation);

}  // namespace concertina
