// Freezes layers at an even rate over a part of the run: a baseline without any statistic.
#include <algorithm>
#include <cmath>

#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

/// Share of the run that is done, from where the policy counts.
double progress(const FreezeView& view) {
  if (view.steps <= 0) return 0;
  return static_cast<double>(view.now().step - view.from_step) / static_cast<double>(view.steps);
}

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const double start = option<double>(options, "start"), end = option<double>(options, "end");
  constexpr double kRounding = 1e-9;  // of a share of the run that is no binary fraction
  const double done = progress(view);
  const double share = std::clamp((done - start) / (end - start), 0.0, 1.0);
  return {.frozen = static_cast<int>(std::floor(view.most * share + kRounding)),
          .statistic = done,
          .reason = fmt::format("{:.3g} of the run is done: {:.3g} of the way from {} to {}", done,
                                share, start, end)};
}

void check(const OptionValues& options, int, int) {
  const double start = option<double>(options, "start"), end = option<double>(options, "end");
  if (start < end) return;
  throw_input(fmt::format("freeze.start = {} is not before freeze.end = {}", start, end),
              "freeze.end", "a share of the run above freeze.start");
}

}  // namespace

FreezePolicy policy_linear() {
  return {
      .decide = decide,
      .options = {{"start", 0.1, "share of the run after which the first layers freeze", 0, 1},
                  {"end", 0.6, "share of the run after which as many are frozen as may be", 0, 1}},
      .foreseen = true,
      .check = check,
      .about = "layers at an even rate from freeze.start to freeze.end, up to freeze.max"};
}

}  // namespace concertina
