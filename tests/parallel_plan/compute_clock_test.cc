// Computing during messages, compared with a simulation in small time steps.
#include "parallel/simulate/compute_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace concertina {
namespace {

TEST(ComputeClock, IsAtFullSpeedWhereNothingPasses) {
  ComputeClock clock(2);
  clock.take(0, 1, 5, 0.5);
  EXPECT_DOUBLE_EQ(clock.end(1, 1, 3), 4);  // another rank
  EXPECT_DOUBLE_EQ(clock.end(0, 0, 1), 1);  // has ended when it starts
  EXPECT_DOUBLE_EQ(clock.end(0, 5, 3), 8);
}

TEST(ComputeClock, StandsStillWhereMessagesTakeAll) {
  ComputeClock clock(1);
  clock.take(0, 1, 5, 0.75);
  clock.take(0, 2, 4, 0.5);
  EXPECT_DOUBLE_EQ(clock.end(0, 0, 1.5), 5.0);
  EXPECT_DOUBLE_EQ(clock.end(0, 0, 1.25), 2);
}

TEST(ComputeClock, LosesWhatMessagesTakeAtTheirTime) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> time(0, 10), share(0, 0.4);
  for (int trial = 0; trial < 200; ++trial) {
    struct Message {
      double start, end, share;
    };
    std::vector<Message> messages;
    ComputeClock clock(1);
    for (int i = 0; i < 5; ++i) {
      const double a = time(random), b = time(random);
      messages.push_back({std::min(a, b), std::max(a, b), share(random)});
      clock.take(0, messages[i].start, messages[i].end, messages[i].share);
    }
    const double start = time(random), seconds = time(random) / 2;
    constexpr double kPiece = 1e-4;
    double done = 0, now = start;
    for (; done < seconds; now += kPiece) {
      double rate = 1;
      for (const Message& one : messages)
        if (one.start <= now && now < one.end) rate -= one.share;
      done += std::max(rate, 0.0) * kPiece;
    }
    EXPECT_NEAR(clock.end(0, start, seconds), now, 20 * kPiece);
    EXPECT_EQ(clock.end(0, start, seconds), clock.end(0, start, seconds));
  }
}

/// It ends for any numbers; if it does not, this test hangs.
TEST(ComputeClock, EndsWhateverTheNumbersAre) {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kHuge = 1e308, kTiny = 5e-324;
  for (const double start : {0.0, 1.0, kHuge, kInf, kNan})
    for (const double seconds : {0.0, 1.0, kTiny, kHuge, kInf, kNan})
      for (const double share : {0.5, 1.0, kHuge, kInf})
        for (const double end : {2.0, kHuge, kInf, kNan}) {
          ComputeClock clock(1);
          clock.take(0, 1, end, share);
          clock.take(0, 1 + 1e-16, 1.5, 0.1);
          const double over = clock.end(0, start, seconds);
          EXPECT_TRUE(!(over < start)) << start << " " << seconds << " " << share << " " << end;
        }
}

}  // namespace
}  // namespace concertina
