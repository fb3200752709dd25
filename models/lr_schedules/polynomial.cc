// A power of what is left of the steps, from the peak down to `min`; with `min` = 0 that of
// torch.optim.lr_scheduler.PolynomialLR.
#include <cmath>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape polynomial() {
  return {.fraction =
              [](const LrPoint& at, const OptionValues& options) {
                return at.min +
                       (1 - at.min) * std::pow(1 - at.progress, option<double>(options, "power"));
              },
          .options = {{"power", 2.0, "exponent of the share of the steps that is left; 1: a line",
                       0.01, 100}}};
}

}  // namespace concertina::lr_shapes
