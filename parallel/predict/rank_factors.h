// Relative durations of the same work on each rank, from measurements.
// Invariant: pure; all ranks obtain the same result from the same measurements.
#pragma once

#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

/// Factors this close to 1 are noise and count as 1.
inline constexpr double kSameRank = 0.1;

/// Returns the kind of each pass of each unit, 3 per unit (F, I, W). Passes of equal cost have the
/// same kind, so that ranks with different layers of equal cost can be compared.
std::vector<int> pass_kinds(const std::vector<UnitCost>& costs);

/// `seconds[r][p]` is rank r's measurement of pass p of kind `kinds[p]`, or 0 if there is none.
/// Returns one factor per rank (0 without measurements) such that seconds = factor of the rank x
/// seconds of the kind, by least squares on the logarithms. Ranks are compared within groups linked
/// by common kinds, relative to the median of the group (of two, the faster one). A rank that
/// shares no kind with any other has factor 1.
std::vector<double> rank_factors(const std::vector<std::vector<double>>& seconds,
                                 const std::vector<int>& kinds);

}  // namespace concertina
