// Clocks of ranks, synchronized by artificial and real round trips.
#include "parallel/comm/clock_sync.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/clock.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

/// A clock that is `skew` ahead of the true time and runs faster by `drift`.
struct Clock {
  double skew = 0, drift = 0;
  double operator()(double time) const { return time + skew + drift * time; }
  double inverse(double reading) const { return (reading - skew) / (1 + drift); }
};

/// Returns 64 round trips from `time` on: each way takes 2 us or, sometimes, much longer.
std::vector<RoundTrip> round_trips(const Clock& own, const Clock& remote, double time,
                                   unsigned seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> delay(1 / 20e-6);
  std::vector<RoundTrip> trips;
  for (int i = 0; i < 64; ++i) {
    const double asked = time, there = asked + 2e-6 + (i % 7 == 3 ? 0 : delay(random));
    const double back = there + 2e-6 + (i % 7 == 3 ? 1e-7 : delay(random));
    trips.push_back({own(asked), remote(there), own(back)});
    time = back;
  }
  return trips;
}

RC_GTEST_PROP(ClockSync, CorrectsSkewAndDriftWithinItsError, ()) {
  const Clock reference{};
  const Clock own{*rc::gen::inRange(-1000000, 1000000) * 1e-3, *rc::gen::inRange(-200, 200) * 1e-6};
  const double begin = 5, end = begin + *rc::gen::inRange(1, 100) * 0.1;
  const auto seed = *rc::gen::arbitrary<unsigned>();
  const ClockOffset early = estimate_offset(round_trips(own, reference, begin, seed));
  const ClockOffset late = estimate_offset(round_trips(own, reference, end, seed + 1));
  const ClockMap map(early, late);
  RC_ASSERT(map.error() < 4e-6);
  for (int i = 0; i <= 10; ++i) {
    const double truth = begin + (end - begin) * i / 10;
    // A small drift within the errors is ignored, so both errors count.
    RC_ASSERT(std::abs(map(own(truth)) - truth) <= 2 * (early.error + late.error) + 1e-8);
  }
}

TEST(ClockSync, TheShortestRoundTripCounts) {
  const std::vector<RoundTrip> trips{{0, 100, 10}, {20, 125.5, 21}, {30, 100, 50}};
  const ClockOffset offset = estimate_offset(trips);
  EXPECT_DOUBLE_EQ(offset.time, 20.5);
  EXPECT_DOUBLE_EQ(offset.offset, 105);
  EXPECT_DOUBLE_EQ(offset.error, 0.5);
}

TEST(ClockSync, AChangeWithinTheErrorsIsNoDrift) {
  const ClockMap map({0, 1e-6, 2e-6}, {1, -1e-6, 1e-6});
  EXPECT_EQ(map.drift(), 0);
  EXPECT_NEAR(map(1000) - 1000, -1e-6, 1e-12);  // uses the better estimate
  EXPECT_NEAR(ClockMap({0, 0, 1e-6}, {1, 1e-4, 1e-6}).drift(), 1e-4, 1e-12);
  EXPECT_EQ(ClockMap()(3.5), 3.5);
}

TEST(ClockSync, ThreadsHaveOneClock) {
  for (const int ranks : {1, 2, 3})
    for (const Delivery delivery : {Delivery::rendezvous, Delivery::eager})
      run_threads(
          ranks,
          [](Communicator& world) {
            const double before = now();
            const ClockOffset offset = measure_offset(world);
            if (world.rank() == 0) {
              EXPECT_EQ(offset.offset, 0);
              return;
            }
            EXPECT_LE(std::abs(offset.offset), offset.error);
            EXPECT_GE(offset.time, before);
            EXPECT_LE(offset.time, now());
          },
          delivery);
}

}  // namespace
}  // namespace concertina
