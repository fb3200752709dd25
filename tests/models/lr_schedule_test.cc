#include "models/lr_schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <numbers>

#include "tests/errors.h"

namespace concertina {
namespace {

TEST(LrScheduleTest, CosineWithWarmUp) {
  const LrSchedule lr =
      make_lr_schedule("cosine", {.peak = 2, .steps = 110, .warmup = 10, .min = 0.1});
  EXPECT_DOUBLE_EQ(lr.rate(1), 0.2);
  EXPECT_DOUBLE_EQ(lr.rate(5), 1);
  EXPECT_DOUBLE_EQ(lr.rate(10), 2);
  EXPECT_DOUBLE_EQ(lr.rate(60), 2 * (0.1 + 0.9 / 2));
  EXPECT_DOUBLE_EQ(lr.rate(110), 0.2);
  EXPECT_DOUBLE_EQ(lr.rate(5000), 0.2);
}

TEST(LrScheduleTest, OneCycleShapesItsWarmUp) {
  for (const std::int64_t warmup : {0, 10}) {
    const LrSchedule lr =
        make_lr_schedule("one-cycle", {.peak = 2, .steps = 100, .warmup = warmup, .min = 0.01});
    EXPECT_NEAR(lr.rate(1), 2.0 / 25, 1e-12);
    EXPECT_DOUBLE_EQ(lr.rate(30), 2);
    EXPECT_DOUBLE_EQ(lr.rate(100), 0.02);
    EXPECT_DOUBLE_EQ(lr.rate(1000), 0.02);
  }
}

TEST(LrScheduleTest, CosineWithRestarts) {
  const LrSchedule lr =
      make_lr_schedule("cosine-restarts", {.peak = 2, .steps = 710, .warmup = 10, .min = 0.1});
  for (const int start : {10, 110, 310}) EXPECT_DOUBLE_EQ(lr.rate(start), 2) << start;
  for (const int middle : {60, 210, 510})
    EXPECT_NEAR(lr.rate(middle), 2 * (0.1 + 0.9 / 2), 1e-12) << middle;
  for (const int last : {109, 309, 710}) EXPECT_NEAR(lr.rate(last), 0.2, 1e-3) << last;
  EXPECT_DOUBLE_EQ(lr.rate(710), 0.2);
  EXPECT_DOUBLE_EQ(lr.rate(5000), 0.2);
  const LrConfig config{.peak = 2, .steps = 1010, .warmup = 10};
  LrConfig equal = config, one = config;
  equal.options = {{"cycles", std::int64_t{10}}, {"growth", 1.0}};
  one.options = {{"cycles", std::int64_t{1}}};
  const LrSchedule tens = make_lr_schedule("cosine-restarts", equal),
                   once = make_lr_schedule("cosine-restarts", one),
                   cosine = make_lr_schedule("cosine", config);
  for (std::int64_t step = 10; step < 1010; ++step) {
    const double within = static_cast<double>((step - 10) % 100) / 100;
    EXPECT_NEAR(tens.rate(step), 1 + std::cos(std::numbers::pi * within), 1e-9) << step;
    EXPECT_DOUBLE_EQ(once.rate(step), cosine.rate(step)) << step;
  }
}

/// Every shape rises linearly to the peak, never exceeds it, and never falls below min afterwards;
/// it never rises again, except for a few restarts.
TEST(LrScheduleTest, EveryShapeStaysInItsBounds) {
  for (const Entry<LrShape>& entry : lr_schedules())
    EXPECT_TRUE(rc::check(std::string(entry.name), [&entry] {
      const std::string_view name = entry.name;
      const bool rises = entry.value.warmup != nullptr;
      const LrConfig config{.peak = *rc::gen::inRange(1, 100) / 10.0,
                            .steps = *rc::gen::inRange(1, 300),
                            .warmup = *rc::gen::inRange(0, 350),
                            .min = *rc::gen::inRange(0, 11) / 10.0};
      const LrSchedule lr = make_lr_schedule(name, config);
      int restarts = 0;
      for (std::int64_t step = 1; step <= config.steps; ++step) {
        const double rate = lr.rate(step);
        RC_ASSERT(rate > 0 || (config.min == 0 && step == config.steps));
        RC_ASSERT(rate <= config.peak * (1 + 1e-12));
        if (step < lr.warmup()) RC_ASSERT(rate < lr.rate(step + 1) || config.steps < 8);
        if (step == lr.warmup()) RC_ASSERT(rate > config.peak * 0.7 || config.steps < 8);
        if (rises) continue;
        if (step > config.warmup) RC_ASSERT(rate >= config.peak * config.min * (1 - 1e-12));
        if (step < config.warmup) RC_ASSERT(rate < lr.rate(step + 1));
        if (step > config.warmup && lr.rate(step + 1) > rate) ++restarts;
      }
      RC_ASSERT(restarts <= 2);
    }));
}

TEST(LrScheduleTest, AnUnknownNameIsRefused) {
  EXPECT_EQ(input_error([] { make_lr_schedule("cosin", {.peak = 1}); }).where(), "lr.schedule");
}

}  // namespace
}  // namespace concertina
