// A factor every so many steps, down to `min`, where it stays (torch.optim.lr_scheduler.StepLR).
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
      .options = {{"every", std::int64_t{100}, "steps after warm-up between two falls", 1, 1e15},
                  {"gamma", 0.5, "factor of the learning rate at each fall", 0.01, 1}}};
}

}  // namespace concertina::lr_shapes
