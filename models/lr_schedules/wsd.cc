// Warm-up, stable, decay: the peak until the last part of the steps, then a decay to `min` (Hu et
// al. 2024, section 4.1; forms of the decay from Haegele et al. 2024, section 3).
#include <cmath>
#include <numbers>
#include <string>

#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

/// Returns the remaining part of the decay, from 1 to 0, after a fraction `within` of its steps.
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
                       "length of the final decay as a fraction of the steps after warm-up", 0, 1},
                      choice("form", "linear", "form of the decay (sqrt: 1 - sqrt(progress))",
                             {"linear", "cosine", "sqrt"})}};
}

}  // namespace concertina::lr_shapes
