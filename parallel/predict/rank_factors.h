// How many times as long each rank takes for the same work as the others, from what each measured.
// Invariant: pure; all ranks find the same from the same figures.
#pragma once

#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

/// A factor that is so near to 1 is noise, and counts as 1.
inline constexpr double kSameRank = 0.1;

/// Returns the kind of each pass of each unit, 3 a unit (F, I, W): those with equal costs are of
/// one kind. Layers are alike, so that ranks that hold different ones can be compared.
std::vector<int> pass_kinds(const std::vector<UnitCost>& costs);

/// `seconds[r][p]`: what rank r measured of pass p, which is of kind `kinds[p]`; 0: nothing.
/// Returns a factor for each rank, 0 where it measured nothing: seconds = factor of the rank x
/// seconds of the kind, by least squares of the logarithms. Ranks are compared as far as kinds link
/// them, within each such group against its median (of two, the faster one); a rank that has no
/// kind in common with any other has 1.
std::vector<double> rank_factors(const std::vector<std::vector<double>>& seconds,
                                 const std::vector<int>& kinds);

}  // namespace concertina
