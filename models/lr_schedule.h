// The learning rate as a function of the step.
// Invariant: pure; a resumed run with the same config takes the same rates.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/registry.h"

namespace concertina {

/// optimizer.lr, run.steps and the keys of [lr].
struct LrConfig {
  double peak = 0;
  std::int64_t steps = 0;
  std::int64_t warmup = 0;  // steps of linear rise; 0: none
  double min = 0;           // what the schedule ends at, as a fraction of the peak
};

/// The shape after the warm-up: `progress` in [0, 1] -> fraction of the peak, 1 at 0; shapes that
/// fall end at `min`, and may rise again to the peak a few times on the way.
using LrShape = double (*)(double progress, double min);

/// The shapes that models/meson.build lists.
std::span<const Entry<LrShape>> lr_schedules();

class LrSchedule {
 public:
  LrSchedule(LrShape shape, const LrConfig& config);

  /// Rate of step `step`, which counts from 1: peak * step / warmup up to step `warmup` (which has
  /// the peak), then the shape, whose progress reaches 1 at the last step and stays there.
  double rate(std::int64_t step) const;

 private:
  LrShape shape_;
  LrConfig config_;
};

/// Throws Error{bad_input} for an unknown name or values out of range, with the config key.
LrSchedule make_lr_schedule(std::string_view name, const LrConfig& config);

}  // namespace concertina
