// Freezes layers at a constant rate over a part of the run: a baseline that uses no statistics.
#include <algorithm>
#include <cmath>

#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

/// Returns the completed fraction of the run, counted from the policy's origin.
double progress(const FreezeView& view) {
  if (view.steps <= 0) return 0;
  return static_cast<double>(view.now().step - view.from_step) / static_cast<double>(view.steps);
}

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const double start = option<double>(options, "start"), end = option<double>(options, "end");
  constexpr double kRounding = 1e-9;  // for fractions of the run without an exact binary form
  const double done = progress(view);
  const double share = std::clamp((done - start) / (end - start), 0.0, 1.0);
  return {.frozen = static_cast<int>(std::floor(view.most * share + kRounding)),
          .statistic = done,
          .reason = fmt::format(
              "a fraction of {:.3g} of the run is done: {:.3g} of the way from {} to {}", done,
              share, start, end)};
}

void check(const OptionValues& options, int, int) {
  const double start = option<double>(options, "start"), end = option<double>(options, "end");
  if (start < end) return;
  throw_input(fmt::format("freeze.start = {} is not less than freeze.end = {}", start, end),
              "freeze.end", "a fraction of the run above freeze.start");
}

}  // namespace

FreezePolicy policy_linear() {
  return {
      .decide = decide,
      .options = {{"start", 0.1, "fraction of the run after which the first layers freeze", 0, 1},
                  {"end", 0.6,
                   "fraction of the run after which the maximum number of layers is frozen", 0, 1}},
      .foreseen = true,
      .check = check,
      .about = "layers at a constant rate from freeze.start to freeze.end, up to freeze.max"};
}

}  // namespace concertina
