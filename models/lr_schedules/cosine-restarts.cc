// Half a cosine from the peak down to `min`, three times, each twice as long as the one before it:
// SGDR (Loshchilov & Hutter 2017, equation 5) with T_mult = 2 and T_0 = a seventh of the steps.
#include <cmath>
#include <numbers>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

double cosine_restarts_fraction(const LrPoint& at, const OptionValues&) {
  // A restart is at the peak; the end of the last cosine is no restart.
  const double sevenths = 7 * at.progress;
  const double start = sevenths < 1 ? 0 : sevenths < 3 ? 1 : 3, length = start + 1;
  const double within = (sevenths - start) / length;
  return at.min + (1 - at.min) * (1 + std::cos(std::numbers::pi * within)) / 2;
}

}  // namespace

LrShape cosine_restarts() {
  return {.fraction = cosine_restarts_fraction};
}

}  // namespace concertina::lr_shapes
