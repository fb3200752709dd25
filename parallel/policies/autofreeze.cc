// AutoFreeze (Liu et al. 2021, "AutoFreeze: Automatically Freezing Model Blocks to Accelerate
// Fine-tuning"; gradient norm test): between two decisions, the gradient norm of layer l changes by
// |g(T-1) - g(T)| / g(T-1). A leading active layer freezes if its change and those of all preceding
// active layers are below a percentile of the changes of all active layers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/number_text.h"
#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

/// Always finite; the largest number if the norm was 0 and has changed.
double relative_change(double before, double now) {
  constexpr double kMost = std::numeric_limits<double>::max();
  if (before == now) return 0;
  return before == 0 ? kMost : std::min(std::abs(before - now) / before, kMost);
}

/// Interpolates linearly between the two nearest values, like numpy. `values` must not be empty.
double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= values.size()) return values.back();
  const double share = place - static_cast<double>(below);
  return share == 0 ? values[below] : (1 - share) * values[below] + share * values[below + 1];
}

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const int frozen = view.now().frozen;
  if (frozen == view.layers) return {.frozen = frozen, .reason = "every layer is frozen"};
  if (view.history.size() < 2)
    return {.frozen = frozen, .reason = "there is no earlier gradient norm for comparison"};
  const std::vector<double>& before = view.history[view.history.size() - 2].grad_norm;
  std::vector<double> changes;
  for (int layer = frozen; layer < view.layers; ++layer) {
    const auto l = static_cast<std::size_t>(layer);
    changes.push_back(relative_change(before[l], view.now().grad_norm[l]));
  }
  const double limit = percentile(changes, option<double>(options, "percentile"));
  const auto moving =
      std::find_if(changes.begin(), changes.end(), [&](double change) { return change >= limit; });
  const int still = static_cast<int>(moving - changes.begin());
  return {
      .frozen = frozen + still,
      .statistic = limit,
      .reason = fmt::format("the relative change of the gradient norms of the next {} was below "
                            "{:.3g}",
                            counted(still, "layer"), limit)};
}

int records(const OptionValues&) {
  return 2;
}

}  // namespace

FreezePolicy policy_autofreeze() {
  return {
      .decide = decide,
      .options = {{"percentile", 50.0,
                   "percentile of the changes in gradient norms; leading layers with a smaller "
                   "change freeze",
                   0, 100}},
      .records = records,
      .about =
          "leading layers whose gradient norms have almost stopped changing (AutoFreeze, Liu et "
          "al. 2021)"};
}

}  // namespace concertina
