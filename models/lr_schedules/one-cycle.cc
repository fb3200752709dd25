// One cycle (Smith & Topin 2018), as torch.optim.lr_scheduler.OneCycleLR in two phases: half a
// cosine from a small rate up to the peak, and half a cosine down to `min`. It shapes the warm-up
// itself: its first step has the small rate, and lr.warmup is not used.
#include <cmath>
#include <numbers>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

/// Half a cosine from `from` to `to`.
double between(double from, double to, double progress) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

double one_cycle_fraction(const LrPoint& at, const OptionValues& options) {
  const auto step = static_cast<double>(at.after - 1), last = static_cast<double>(at.last - 1);
  const double top = option<double>(options, "rise") * static_cast<double>(at.last) - 1;
  if (top > 0 && step <= top) return between(1 / option<double>(options, "div"), 1, step / top);
  return between(1, at.min, last > top ? (step - top) / (last - top) : 1);
}

std::int64_t warmup_of(std::int64_t last, const OptionValues& options) {
  return std::llround(option<double>(options, "rise") * static_cast<double>(last));
}

}  // namespace

LrShape one_cycle() {
  return {.fraction = one_cycle_fraction,
          .options = {{"rise", 0.3, "share of lr.steps that rises, in place of lr.warmup", 0, 0.99},
                      {"div", 25.0, "the peak / the rate of the first step", 1, 1e12}},
          .warmup = warmup_of};
}

}  // namespace concertina::lr_shapes
