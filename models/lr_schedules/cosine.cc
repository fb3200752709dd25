// Half a cosine from the peak down to `min` (SGDR, Loshchilov & Hutter 2017, equation 5).
#include <cmath>
#include <numbers>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape cosine() {
  return {.fraction = [](const LrPoint& at, const OptionValues&) {
    return at.min + (1 - at.min) * (1 + std::cos(std::numbers::pi * at.progress)) / 2;
  }};
}

}  // namespace concertina::lr_shapes
