// Falls from the peak to `min` in a number of plateaus, which is its own option.
#include <cmath>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

double plateaus_fraction(const LrPoint& at, const OptionValues& options) {
  const auto count = static_cast<double>(option<std::int64_t>(options, "count"));
  return 1 - (1 - at.min) * std::floor(at.progress * count) / count;
}

}  // namespace

LrShape plateaus() {
  return {.fraction = plateaus_fraction,
          .options = {{"count", std::int64_t{4}, "falls down to the end", 1, 1000}}};
}

}  // namespace concertina::lr_shapes
