#include "models/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lr_schedule_table.h"

namespace concertina {

namespace lr_shapes {
#define CONCERTINA_DECLARE(name, symbol) double symbol(double progress, double min);
CONCERTINA_LR_SCHEDULES(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE
}  // namespace lr_shapes

namespace {

#define CONCERTINA_ENTRY(name, symbol) Entry<LrShape>{name, lr_shapes::symbol},
constexpr std::array kLrSchedules{CONCERTINA_LR_SCHEDULES(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY

}  // namespace

std::span<const Entry<LrShape>> lr_schedules() {
  return kLrSchedules;
}

LrSchedule::LrSchedule(LrShape shape, const LrConfig& config) : shape_(shape), config_(config) {
  if (!(config.peak >= 0) || !std::isfinite(config.peak))
    throw_input(fmt::format("optimizer.lr = {} is not a rate", config.peak), "optimizer.lr",
                "a number >= 0");
  if (config.warmup < 0)
    throw_input(fmt::format("lr.warmup = {} is negative", config.warmup), "lr.warmup",
                "a number of steps >= 0");
  if (!(config.min >= 0 && config.min <= 1))
    throw_input(fmt::format("lr.min = {} is out of range", config.min), "lr.min",
                "a fraction of optimizer.lr, from 0 to 1");
}

double LrSchedule::rate(std::int64_t step) const {
  if (step <= config_.warmup)
    return config_.peak * static_cast<double>(step) / static_cast<double>(config_.warmup);
  const std::int64_t falling = std::max<std::int64_t>(1, config_.steps - config_.warmup);
  const double progress =
      std::min(1.0, static_cast<double>(step - config_.warmup) / static_cast<double>(falling));
  return config_.peak * shape_(progress, config_.min);
}

LrSchedule make_lr_schedule(std::string_view name, const LrConfig& config) {
  return {lookup(lr_schedules(), name, "lr schedule", "lr.schedule"), config};
}

}  // namespace concertina
