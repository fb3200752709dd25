// The learning rate as a function of the step.
// Invariant: the function is pure, so a resumed run with the same config uses the same rates.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "core/registry.h"

namespace concertina {

/// Values of optimizer.lr, run.steps and the keys of [lr].
struct LrConfig {
  double peak = 0;
  std::int64_t steps = 0;
  std::int64_t warmup = 0;  // steps of linear warm-up
  double min = 0;           // final rate as a fraction of the peak
  OptionValues options{};   // schedule options; omitted ones have their defaults
};

/// The position of a step in the schedule.
struct LrPoint {
  double progress = 0;      // in [0, 1], from the end of the warm-up to the last step
  double min = 0;           // as in LrConfig
  std::int64_t after = 0;   // steps since the warm-up
  std::int64_t warmup = 0;  // number of warm-up steps
  std::int64_t last = 1;    // the last step of the schedule
};

/// The shape of a schedule and its options.
struct LrShape {
  /// Returns the fraction of the peak: 1 at the end of the warm-up, never below `min` after it, and
  /// in (0, 1] except at the last step.
  double (*fraction)(const LrPoint& point, const OptionValues& options) = nullptr;
  std::vector<Option> options{};
  /// If not null, the shape includes its warm-up, and this returns how many of the `last` steps it
  /// takes. The shape then receives points as if there were no warm-up, and may start below `min`.
  std::int64_t (*warmup)(std::int64_t last, const OptionValues& options) = nullptr;
};

/// Returns the shapes listed in models/meson.build.
std::span<const Entry<LrShape>> lr_schedules();

class LrSchedule {
 public:
  LrSchedule(const LrShape& shape, const LrConfig& config);

  /// Returns the rate for `step`, which counts from 1: peak * step / warmup through step `warmup`,
  /// then the shape, whose progress reaches 1 at the last step and stays there.
  double rate(std::int64_t step) const;
  /// Returns the number of steps until the rate reaches the peak.
  std::int64_t warmup() const { return warmup_; }

 private:
  double (*fraction_)(const LrPoint& point, const OptionValues& options);
  LrConfig config_;
  std::int64_t warmup_;
};

/// Throws Error{bad_input}, naming the config key, for an unknown name.
LrSchedule make_lr_schedule(std::string_view name, const LrConfig& config);

}  // namespace concertina
