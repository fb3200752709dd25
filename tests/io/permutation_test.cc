// The permutation of io/datasets/source.h is a bijection for every size, and depends on seed and
// epoch.
#include "io/datasets/source.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace concertina {
namespace {

std::vector<std::uint64_t> images(const Permutation& permutation) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < permutation.size(); ++i) values.push_back(permutation(i));
  return values;
}

TEST(PermutationTest, EverySizeIsABijection) {
  for (std::uint64_t n = 1; n <= 300; ++n) {
    std::vector<bool> seen(n, false);
    for (const std::uint64_t value : images(Permutation(7, n, n))) {
      ASSERT_LT(value, n);
      ASSERT_FALSE(seen[value]) << "n " << n << " value " << value;
      seen[value] = true;
    }
  }
}

TEST(PermutationTest, HugeSizesStayInRangeWithoutCollisions) {
  for (const int bits : {31, 32, 33, 47, 61}) {
    const Permutation permutation(3, 1, (std::uint64_t{1} << bits) + 1);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const std::uint64_t value = permutation(permutation.size() - 1 - i * 7919);
      EXPECT_LT(value, permutation.size());
      EXPECT_TRUE(seen.insert(value).second);
    }
  }
}

TEST(PermutationTest, SeedAndEpochMatter) {
  const auto base = images(Permutation(1, 0, 100));
  EXPECT_EQ(base, images(Permutation(1, 0, 100)));
  EXPECT_NE(base, images(Permutation(2, 0, 100)));
  EXPECT_NE(base, images(Permutation(1, 1, 100)));
  EXPECT_NE(base, images(Permutation(1, std::uint64_t{1} << 32, 100)));
}

// Each index falls into each tenth about equally often: 5 standard deviations over 4000 epochs.
TEST(PermutationTest, ImagesAreSpreadEvenly) {
  std::vector<int> tenths(10, 0);
  constexpr int kEpochs = 4000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++tenths[Permutation(5, epoch, 90)(17) / 9];
  for (const int count : tenths) EXPECT_NEAR(count, kEpochs / 10, 5 * 19);
}

}  // namespace
}  // namespace concertina
