// The ticks of an axis of time, and short numbers for figures.
#pragma once

#include <string>
#include <vector>

namespace concertina {

struct AxisTick {
  double value = 0;
  std::string label;
};

/// At most about `count` ticks from 0 to `high`, at multiples of 1, 2 or 5 times a power of ten.
std::vector<AxisTick> axis_ticks(double high, int count);

/// "0.25", "12,000", "3.5e-06": `digits` significant ones at most.
std::string short_number(double value, int digits);

}  // namespace concertina
