#include "models/lr_schedule.h"

#include <algorithm>

#include "lr_schedule_table.h"

namespace concertina {

CONCERTINA_REGISTRY_IN(CONCERTINA_LR_SCHEDULES, LrShape, lr_shapes, lr_schedules)

LrSchedule::LrSchedule(const LrShape& shape, const LrConfig& config)
    : fraction_(shape.fraction), config_(config), warmup_(config.warmup) {
  config_.options = with_defaults(shape.options, config.options);
  if (shape.warmup == nullptr) return;
  warmup_ = shape.warmup(std::max<std::int64_t>(1, config.steps), config_.options);
  config_.warmup = 0;
}

double LrSchedule::rate(std::int64_t step) const {
  if (step <= config_.warmup)
    return config_.peak * static_cast<double>(step) / static_cast<double>(config_.warmup);
  const std::int64_t falling = std::max<std::int64_t>(1, config_.steps - config_.warmup);
  const std::int64_t after = std::min(step - config_.warmup, falling);
  const LrPoint point{.progress = static_cast<double>(after) / static_cast<double>(falling),
                      .min = config_.min,
                      .after = after,
                      .warmup = config_.warmup,
                      .last = config_.warmup + falling};
  return config_.peak * fraction_(point, config_.options);
}

LrSchedule make_lr_schedule(std::string_view name, const LrConfig& config) {
  return {lookup(lr_schedules(), name, "lr schedule", "lr.schedule"), config};
}

}  // namespace concertina
