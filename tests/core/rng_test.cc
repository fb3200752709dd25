#include "core/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace concertina {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// Returns a generator whose key, mixed with the purpose, is (low, high).
Rng with_key(std::uint32_t low, std::uint32_t high) {
  const std::uint32_t mixed = high ^ 0x9E3779B9U;  // Purpose::init == 1
  return {(static_cast<std::uint64_t>(mixed) << 32) | low, Purpose::init};
}

/// Known answers of philox4x32 with 10 rounds, from Random123's kat_vectors.
TEST(RngTest, PhiloxKnownAnswers) {
  EXPECT_EQ(with_key(0, 0).words(0, 0, 0, 0),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(with_key(ones, ones).words(ones, ones, ones, ones),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(with_key(0xa4093822, 0x299f31d0).words(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RngTest, EveryArgumentMatters) {
  const Rng rng(42, Purpose::init);
  const std::set<Words> all{rng.words(0, 0, 0, 0),
                            rng.words(1, 0, 0, 0),
                            rng.words(0, 1, 0, 0),
                            rng.words(0, 0, 1, 0),
                            rng.words(0, 0, 0, 1),
                            Rng(43, Purpose::init).words(0, 0, 0, 0),
                            Rng(42 + (1ULL << 40), Purpose::init).words(0, 0, 0, 0),
                            Rng(42, Purpose::shuffle).words(0, 0, 0, 0)};
  EXPECT_EQ(all.size(), 8U);
}

struct Moments {
  double mean = 0, variance = 0, skew = 0, kurtosis = 0;
};

Moments moments(const std::vector<double>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) m.mean += v / n;
  for (const double v : values) m.variance += std::pow(v - m.mean, 2) / n;
  const double s = std::sqrt(m.variance);
  for (const double v : values) m.skew += std::pow((v - m.mean) / s, 3) / n;
  for (const double v : values) m.kurtosis += std::pow((v - m.mean) / s, 4) / n;
  return m;
}

TEST(RngTest, UniformMoments) {
  const Rng rng(1, Purpose::sample);
  std::vector<double> values;
  for (std::uint32_t i = 0; i < 200000; ++i)
    values.push_back(static_cast<double>(rng.uniform(3, i % 7, 0, i)));
  for (const double v : values) ASSERT_TRUE(v >= 0 && v < 1);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 0.5, 0.003);
  EXPECT_NEAR(m.variance, 1.0 / 12, 0.001);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
}

TEST(RngTest, NormalMoments) {
  const Rng rng(2, Purpose::init);
  std::vector<double> values;
  for (std::uint32_t i = 0; i < 200000; ++i)
    values.push_back(static_cast<double>(rng.normal(0, 0, 5, i)));
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.variance, 1, 0.015);
  EXPECT_NEAR(m.skew, 0, 0.03);
  EXPECT_NEAR(m.kurtosis, 3, 0.06);
}

TEST(RngTest, NeighborsAreUncorrelated) {
  const Rng rng(3, Purpose::init);
  const std::uint32_t n = 100000;
  double next = 0, other_unit = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto here = static_cast<double>(rng.normal(0, 0, 0, i));
    next += here * static_cast<double>(rng.normal(0, 0, 0, i + 1)) / n;
    other_unit += here * static_cast<double>(rng.normal(0, 0, 1, i)) / n;
  }
  EXPECT_NEAR(next, 0, 0.015);
  EXPECT_NEAR(other_unit, 0, 0.015);
}

}  // namespace
}  // namespace concertina
