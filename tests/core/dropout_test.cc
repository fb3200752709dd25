// Tests the distribution of what dropout keeps. The kernel tests (kernels/elementwise.cc) check
// that every backend keeps the same elements.
#include "core/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/backend.h"
#include "tests/buffer.h"

namespace concertina {
namespace {

constexpr std::int64_t kElements = 1 << 18;
constexpr double kSigmas = 4.5;
const RandomAt kAt{17, 3, 100, 5};

/// Applies dropout to `samples` samples of ones.
std::vector<float> dropped_ones(double share, const RandomAt& at = kAt, std::int64_t samples = 1) {
  const std::vector<float> ones(static_cast<std::size_t>(samples * kElements), 1.0F);
  const Buffer u(ones), y(ones.size());
  make_cpu_backend(1)->run(ApplyDropout{{share, at, kElements}, u.view(), {}, y.view()});
  return y.values();
}

/// Counts the elements that are kept in both or dropped in both, out of `count`.
std::int64_t agreements(const float* a, const float* b, std::int64_t count) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += (a[i] == 0) == (b[i] == 0);
  return sum;
}

/// Checks that `sum` of `count` trials succeeded, each with probability p.
void expect_binomial(std::int64_t sum, std::int64_t count, double p, const char* what) {
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(static_cast<double>(sum), n * p, kSigmas * std::sqrt(n * p * (1 - p))) << what;
}

TEST(DropoutTest, DropsItsShareAndKeepsTheExpectation) {
  for (const double share : {0.001, 0.1, 0.5, 0.9}) {
    const std::vector<float> y = dropped_ones(share);
    const std::int64_t dropped = std::count(y.begin(), y.end(), 0.0F);
    expect_binomial(dropped, kElements, share, "dropped");
    double mean = 0;
    for (const float value : y) {
      EXPECT_TRUE(value == 0 || value == static_cast<float>(1 / (1 - share)));
      mean += static_cast<double>(value) / kElements;
    }
    EXPECT_NEAR(mean, 1, kSigmas * std::sqrt(share / (1 - share) / kElements)) << share;
  }
}

TEST(DropoutTest, MasksOfDifferentCountersAreIndependent) {
  constexpr double kShare = 0.3, kAgree = kShare * kShare + (1 - kShare) * (1 - kShare);
  const std::vector<float> one = dropped_ones(kShare);
  RandomAt seed = kAt, step = kAt, sample = kAt, unit = kAt;
  ++seed.seed, ++step.step, ++sample.sample, ++unit.unit;
  for (const RandomAt& at : {seed, step, sample, unit})
    expect_binomial(agreements(one.data(), dropped_ones(kShare, at).data(), kElements), kElements,
                    kAgree, "streams");
  for (const std::int64_t lag : {1, 2, 3, 4, 8, 64, 256, 4096})
    expect_binomial(agreements(one.data(), one.data() + lag, kElements - lag), kElements - lag,
                    kAgree, "neighbors");
}

/// Samples may be divided into microbatches in any way.
TEST(DropoutTest, AMicrobatchIsItsSamples) {
  const std::vector<float> two = dropped_ones(0.3, kAt, 2);
  RandomAt second = kAt;
  ++second.sample;
  std::vector<float> each = dropped_ones(0.3);
  const std::vector<float> other = dropped_ones(0.3, second);
  EXPECT_NE(each, other);
  each.insert(each.end(), other.begin(), other.end());
  EXPECT_EQ(two, each);
}

}  // namespace
}  // namespace concertina
