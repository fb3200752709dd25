// Decays from the peak to `min` with a power of the remaining fraction of steps. With `min` = 0
// this is torch.optim.lr_scheduler.PolynomialLR.
#include <cmath>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape polynomial() {
  return {.fraction =
              [](const LrPoint& at, const OptionValues& options) {
                return at.min +
                       (1 - at.min) * std::pow(1 - at.progress, option<double>(options, "power"));
              },
          .options = {{"power", 2.0, "exponent of the remaining fraction of steps (1: linear)",
                       0.01, 100}}};
}

}  // namespace concertina::lr_shapes
