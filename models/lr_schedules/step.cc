// Decays by a factor at regular intervals, down to `min` (torch.optim.lr_scheduler.StepLR).
#include <algorithm>
#include <cmath>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape step() {
  return {
      .fraction =
          [](const LrPoint& at, const OptionValues& options) {
            const std::int64_t falls = at.after / option<std::int64_t>(options, "every");
            return std::max(at.min,
                            std::pow(option<double>(options, "gamma"), static_cast<double>(falls)));
          },
      .options = {{"every", std::int64_t{100},
                   "number of steps between decays, counted from the end of the warm-up", 1, 1e15},
                  {"gamma", 0.5, "factor applied to the learning rate at each decay", 0.01, 1}}};
}

}  // namespace concertina::lr_shapes
