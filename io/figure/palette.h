// The colours, dashes, markers and hatches of figures.
// Invariants: colours of series are those of Okabe and Ito ("Color Universal Design", 2008), in an
// order in which neighbours differ in lightness too; the scale of heat maps is cividis (Nuñez,
// Anderton and Renslow 2018), whose lightness grows evenly and which looks alike to all eyes.
#pragma once

#include <vector>

#include "io/figure/drawing.h"

namespace concertina {

inline constexpr Colour kInk{29, 33, 41}, kSoft{92, 100, 112}, kGridLine{224, 227, 232},
    kPaper{255, 255, 255};

/// How the n-th series is drawn, n from 0 on; all repeat, dashes and hatches sooner than colours.
Colour series_colour(std::size_t n);
std::vector<double> series_dash(std::size_t n);
Hatch series_hatch(std::size_t n);
/// The n-th marker of this radius at `at`.
Shape series_marker(std::size_t n, Spot at, double radius, const Paint& paint);

/// The colour of a share from 0 (dark blue) to 1 (light yellow).
Colour cividis(double share);

}  // namespace concertina
