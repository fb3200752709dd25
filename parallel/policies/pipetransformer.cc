// PipeTransformer (He et al., ICML 2021, equation 1): L(0) = 0, and at decision T
//   L(T) = min(L(T-1) + alpha (L - L(T-1)), argmin over the active layers of the gradient norm).
// Layers are numbered from 1: the layer with the smallest norm is the last one to freeze. L(T) is
// kept as a real number; rounded, it is the number of frozen layers. The published code uses the
// ceiling of L (1 - (1 - alpha)^T), which is the same if the argmin never applies.
#include <algorithm>
#include <cmath>

#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

/// Differences below this are due to the rounding of alpha: 12 layers times 0.3333333 is 4.
constexpr double kWhole = 1e-6;

/// The active layer with the smallest gradient norm, from 1, or `view.layers` if none is active.
int smallest_norm(const FreezeView& view) {
  const std::vector<double>& norms = view.now().grad_norm;
  const auto active = norms.begin() + view.now().frozen;
  if (active == norms.end()) return view.layers;
  return static_cast<int>(std::min_element(active, norms.end()) - norms.begin()) + 1;
}

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const double before = view.memory.empty() ? 0 : view.memory[0];
  const double pace = before + option<double>(options, "alpha") * (view.layers - before);
  const int smallest = smallest_norm(view);
  const double value = std::min<double>(pace, smallest);
  const bool up = option<std::string>(options, "rounding") == "ceil";
  const double whole = up ? std::ceil(value - kWhole) : std::floor(value + kWhole);
  return {.frozen = static_cast<int>(whole),
          .statistic = value,
          .reason = fmt::format("L = {:.4g}: the rate allows {:.4g}, and layer {} has the smallest "
                                "gradient norm",
                                value, pace, smallest),
          .memory = {value}};
}

}  // namespace

FreezePolicy policy_pipetransformer() {
  return {.decide = decide,
          .options = {{"alpha", 1.0 / 3,
                       "largest fraction of the training layers to freeze at once", 0, 1},
                      choice("rounding", "ceil",
                             "rounding to whole layers: up, as in the authors' code, or down",
                             {"ceil", "floor"})},
          .foreseen = true,
          .about =
              "at most a fraction alpha of the remaining layers, up to the layer with the smallest "
              "gradient norm (PipeTransformer, He et al. 2021, equation 1)"};
}

}  // namespace concertina
