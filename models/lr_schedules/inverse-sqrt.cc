// Decays with the inverse square root of the step, down to `min` (Vaswani et al. 2017, equation 3,
// whose peak is 1 / sqrt(d_model warmup_steps)). Without a warm-up it decays from step 1.
#include <algorithm>
#include <cmath>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape inverse_sqrt() {
  return {.fraction = [](const LrPoint& at, const OptionValues&) {
    const auto warmup = static_cast<double>(std::max<std::int64_t>(1, at.warmup));
    const auto step = static_cast<double>(std::max<std::int64_t>(1, at.warmup + at.after));
    return std::max(at.min, std::sqrt(warmup / step));
  }};
}

}  // namespace concertina::lr_shapes
