// SGDR (Loshchilov & Hutter 2017, equation 5) with T_mult = growth: half cosines from the peak down
// to `min`, each `growth` times as long as the previous one. By default T_0 is a seventh of the
// steps.
#include <cmath>
#include <numbers>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

double cosine_restarts_fraction(const LrPoint& at, const OptionValues& options) {
  const auto cycles = option<std::int64_t>(options, "cycles");
  const auto growth = option<double>(options, "growth");
  double all = 0, length = 1;  // in units of the first cosine's length
  for (std::int64_t i = 0; i < cycles; ++i, length *= growth) all += length;
  const double now = all * at.progress;
  // The rate is at its peak at a restart. The end of the last cosine is not a restart.
  double start = 0;
  length = 1;
  for (std::int64_t i = 1; i < cycles && now >= start + length; ++i, length *= growth)
    start += length;
  const double within = (now - start) / length;
  return at.min + (1 - at.min) * (1 + std::cos(std::numbers::pi * within)) / 2;
}

}  // namespace

LrShape cosine_restarts() {
  return {.fraction = cosine_restarts_fraction,
          .options = {{"cycles", std::int64_t{3}, "number of cosines", 1, 1000},
                      {"growth", 2.0, "length of each cosine relative to the previous one", 1, 2}}};
}

}  // namespace concertina::lr_shapes
