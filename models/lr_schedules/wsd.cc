// Warm-up, stable, decay: the peak until the last part of the steps, then down to `min` (Hu et al.
// 2024, section 4.1; forms of the decay as Haegele et al. 2024, section 3).
#include <cmath>
#include <numbers>
#include <string>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

/// The part of the fall that is left, 1 to 0, when `within` of it is done.
double left_of(const std::string& form, double within) {
  if (form == "cosine") return (1 + std::cos(std::numbers::pi * within)) / 2;
  if (form == "sqrt") return 1 - std::sqrt(within);
  return 1 - within;
}

double wsd_fraction(const LrPoint& at, const OptionValues& options) {
  const double share = option<double>(options, "decay");
  if (at.progress <= 1 - share) return 1;
  const double within = (at.progress - (1 - share)) / share;
  return at.min + (1 - at.min) * left_of(option<std::string>(options, "form"), within);
}

}  // namespace

LrShape wsd() {
  return {.fraction = wsd_fraction,
          .options = {{"decay", 0.2,
                       "share of the steps after warm-up that the decay takes, at their end", 0, 1},
                      choice("form", "linear", "how it falls there; sqrt: as 1 - sqrt(progress)",
                             {"linear", "cosine", "sqrt"})}};
}

}  // namespace concertina::lr_shapes
