// The learning rate as a function of the step.
// Invariant: pure; a resumed run with the same config takes the same rates.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "core/registry.h"

namespace concertina {

/// optimizer.lr, run.steps and the keys of [lr].
struct LrConfig {
  double peak = 0;
  std::int64_t steps = 0;
  std::int64_t warmup = 0;  // steps of linear rise; 0: none
  double min = 0;           // what the schedule ends at, as a fraction of the peak
  OptionValues options{};   // of the schedule; those left out have their defaults
};

/// Where a step is in the schedule.
struct LrPoint {
  double progress = 0;      // in [0, 1], from the end of the warm-up to the last step
  double min = 0;           // as in LrConfig
  std::int64_t after = 0;   // steps since the warm-up
  std::int64_t warmup = 0;  // steps of it
  std::int64_t last = 1;    // the last step of warm-up and schedule
};

/// The shape of a schedule and its options.
struct LrShape {
  /// Fraction of the peak, in (0, 1] but at the last step. 1 at the end of the warm-up, and never
  /// below `min` after it.
  double (*fraction)(const LrPoint& point, const OptionValues& options) = nullptr;
  std::vector<Option> options{};
  /// Not null: it shapes the warm-up too, which is so many of all `last` steps: it gets points as
  /// if there were none, and may begin below `min`.
  std::int64_t (*warmup)(std::int64_t last, const OptionValues& options) = nullptr;
};

/// The shapes that models/meson.build lists.
std::span<const Entry<LrShape>> lr_schedules();

class LrSchedule {
 public:
  LrSchedule(const LrShape& shape, const LrConfig& config);

  /// Rate of step `step`, which counts from 1: peak * step / warmup up to step `warmup` (which has
  /// the peak), then the shape, whose progress reaches 1 at the last step and stays there.
  double rate(std::int64_t step) const;
  /// Steps until the rate has risen to the peak.
  std::int64_t warmup() const { return warmup_; }

 private:
  double (*fraction_)(const LrPoint& point, const OptionValues& options);
  LrConfig config_;
  std::int64_t warmup_;
};

/// Throws Error{bad_input} for an unknown name or values out of range, with the config key.
LrSchedule make_lr_schedule(std::string_view name, const LrConfig& config);

}  // namespace concertina
