// Decays by a constant factor per step, down to `min` (torch.optim.lr_scheduler.ExponentialLR).
#include <algorithm>
#include <cmath>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape exponential() {
  return {.fraction =
              [](const LrPoint& at, const OptionValues& options) {
                return std::max(at.min, std::pow(option<double>(options, "gamma"),
                                                 static_cast<double>(at.after)));
              },
          .options = {{"gamma", 0.999,
                       "factor applied to the learning rate at each step after warm-up", 0.01, 1}}};
}

}  // namespace concertina::lr_shapes
