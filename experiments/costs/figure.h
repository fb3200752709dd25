// What a number of seconds, bytes or a rate may be, wherever a user writes one: on the command
// line, in a machine file, in costs.json. Invariant: the product or quotient of any two figures,
// summed over all actions of a plan (kMostActions), is finite. So no prediction from figures
// overflows, and none gets stuck.
#pragma once

namespace concertina {

inline constexpr double kLeastFigure = 1e-30, kMostFigure = 1e18;
inline constexpr const char* kFigures = "0, or a number from 1e-30 to 1e18";

/// False for NaN and infinity, too.
inline constexpr bool is_figure(double value) {
  return value == 0 || (value >= kLeastFigure && value <= kMostFigure);
}

}  // namespace concertina
