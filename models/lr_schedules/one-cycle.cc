// One cycle (Smith & Topin 2018), like the two-phase torch.optim.lr_scheduler.OneCycleLR: half a
// cosine from a small rate up to the peak, then half a cosine down to `min`. The shape includes its
// warm-up, so its first step has the small rate and lr.warmup is not used.
#include <cmath>
#include <numbers>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

/// Returns a point on half a cosine between `from` and `to`.
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
  return {
      .fraction = one_cycle_fraction,
      .options = {{"rise", 0.3,
                   "fraction of lr.steps during which the rate rises; replaces lr.warmup", 0, 0.99},
                  {"div", 25.0, "ratio of the peak rate to the rate of the first step", 1, 1e12}},
      .warmup = warmup_of};
}

}  // namespace concertina::lr_shapes
