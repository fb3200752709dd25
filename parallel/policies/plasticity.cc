// After Egeria (Wang et al., EuroSys 2023): a layer has converged if its change from a reference
// snapshot, smoothed over a window, is at most a fraction of its largest value so far; the leading
// converged layers freeze. Egeria compares activations with those of a quantized reference model
// and uses the slope of their difference over time. This policy compares the weights, which needs
// no second model: a layer changes by |drift(T) - drift(T-1)| between two decisions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/number_text.h"
#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

constexpr std::int64_t kMostWindow = kMostFreezeRecords - 1;

/// Decisions since the last snapshot, including the current one.
std::int64_t age_of_reference(std::span<const FreezeRecord> history) {
  std::int64_t age = 1;
  for (auto i = history.size() - 1; i > 0 && !history[i - 1].reference; --i) ++age;
  return age;
}

/// Number of latest records with a drift, at most `window`.
std::size_t measured(std::span<const FreezeRecord> history, std::size_t window) {
  std::size_t count = 0;
  while (count < std::min(window, history.size()) &&
         !history[history.size() - 1 - count].drift.empty())
    ++count;
  return count;
}

/// Mean change of a layer between decisions, over the last `window` decisions.
double smoothed_change(std::span<const FreezeRecord> history, std::size_t window, std::size_t l) {
  double sum = 0;
  for (std::size_t i = history.size() - window; i < history.size(); ++i) {
    const bool continues = i > 0 && !history[i - 1].reference && !history[i - 1].drift.empty();
    sum += std::abs(history[i].drift[l] - (continues ? history[i - 1].drift[l] : 0)) /
           static_cast<double>(window);
  }
  return std::min(sum, std::numeric_limits<double>::max());
}

/// Freezes leading active layers whose change has fallen to the tolerance. `memory` is the largest
/// change so far, by layer.
FreezeDecision converged(const FreezeView& view, std::size_t window, double tolerance) {
  FreezeDecision decision{.frozen = view.now().frozen};
  decision.memory.assign(view.memory.begin(), view.memory.end());
  decision.memory.resize(static_cast<std::size_t>(view.layers));
  bool leading = true;
  for (int layer = view.now().frozen; layer < view.layers; ++layer) {
    const auto l = static_cast<std::size_t>(layer);
    const double change = smoothed_change(view.history, window, l);
    double& largest = decision.memory[l];
    largest = std::max(largest, change);
    const double share = largest > 0 ? change / largest : 0;
    if (leading) decision.statistic = share;
    leading = leading && !view.memory.empty() && share <= tolerance;
    if (leading) ++decision.frozen;
  }
  decision.reason =
      fmt::format("{} changed by at most a fraction of {} of the largest change",
                  counted(decision.frozen - view.now().frozen, "further layer"), tolerance);
  return decision;
}

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const auto window = static_cast<std::size_t>(option<std::int64_t>(options, "window"));
  const std::size_t have = measured(view.history, window);
  FreezeDecision decision;
  if (have == window) {
    decision = converged(view, window, option<double>(options, "tolerance"));
  } else {
    decision = {.frozen = view.now().frozen,
                .reason = fmt::format("changes of layers are known for {}, but the window needs {}",
                                      counted(static_cast<std::int64_t>(have), "decision"), window),
                .memory = {view.memory.begin(), view.memory.end()}};
  }
  decision.take_reference =
      view.now().drift.empty() ||
      age_of_reference(view.history) >= option<std::int64_t>(options, "reference_every");
  return decision;
}

int records(const OptionValues& options) {
  return static_cast<int>(std::max(option<std::int64_t>(options, "window"),
                                   option<std::int64_t>(options, "reference_every"))) +
         1;
}

}  // namespace

FreezePolicy policy_plasticity() {
  return {.decide = decide,
          .options = {{"tolerance", 0.2,
                       "fraction of its largest change at which a layer has converged", 0, 1},
                      {"window", std::int64_t{5},
                       "decisions over which the change of a layer is smoothed", 1, kMostWindow},
                      {"reference_every", std::int64_t{10},
                       "decisions between two reference snapshots of the weights", 1, kMostWindow}},
          .wants_reference = true,
          .records = records,
          .about =
              "leading layers that have almost stopped changing relative to a snapshot (after "
              "Egeria, Wang et al. 2023)"};
}

}  // namespace concertina
