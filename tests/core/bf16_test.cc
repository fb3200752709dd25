#include "core/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace concertina {
namespace {

float narrow(float x) {
  return to_float(rounded<Bf16>(x));
}

TEST(Bf16Test, EveryValueOfItsOwnStaysAsItIs) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const Bf16 value{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(value)))
      EXPECT_TRUE(std::isnan(narrow(to_float(value)))) << bits;
    else
      EXPECT_EQ(rounded<Bf16>(to_float(value)).bits, bits);
  }
}

/// Expects the nearer of the two neighbors in double or, in a tie, the one ending in 0.
TEST(Bf16Test, RoundsToTheNearestTiesToEven) {
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(random()) & 0x7FFFFFFFU;
    if (i % 4 == 0) bits = (bits & 0x7FFF0000U) | 0x8000U;  // a tie
    if (i % 4 == 1) bits &= 0x007FFFFFU;                    // a denormal
    if (bits >= 0x7F7F0000U) continue;                      // the upper neighbor is infinite
    const auto below = static_cast<std::uint16_t>(bits >> 16);
    const Bf16 low{below}, high{static_cast<std::uint16_t>(below + 1)};
    const double x = static_cast<double>(std::bit_cast<float>(bits));
    const double down = x - static_cast<double>(to_float(low));
    const double up = static_cast<double>(to_float(high)) - x;
    const Bf16 expected = down < up || (down == up && below % 2 == 0) ? low : high;
    EXPECT_EQ(rounded<Bf16>(std::bit_cast<float>(bits)).bits, expected.bits);
    EXPECT_EQ(rounded<Bf16>(-std::bit_cast<float>(bits)).bits, expected.bits | 0x8000);
  }
}

TEST(Bf16Test, TooLargeIsInfiniteAndNanStaysNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(narrow(std::numeric_limits<float>::max()), kInfinity);
  EXPECT_EQ(narrow(-kInfinity), -kInfinity);
  for (const std::uint32_t nan : {0x7F800001U, 0x7FFFFFFFU, 0xFFFFFFFFU, 0xFF80FFFFU})
    EXPECT_TRUE(std::isnan(narrow(std::bit_cast<float>(nan)))) << nan;
}

}  // namespace
}  // namespace concertina
