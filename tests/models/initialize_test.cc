#include "models/model.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace concertina {
namespace {

std::vector<float> filled(const Bucket& bucket, std::uint64_t seed) {
  std::vector<float> values(bucket.elements, -1);
  initialize(bucket, seed, 0, values);
  return values;
}

const ModelConfig kOddShapes{.layers = 2, .width = 30, .heads = 3, .context = 9, .vocab = 41};

TEST(InitializeTest, AnyCutGivesTheSameBits) {
  const auto buckets = make_buckets(make_model("gpt", kOddShapes)->spec());
  EXPECT_TRUE(rc::check([&] {
    const Bucket& bucket = *rc::gen::elementOf(buckets);
    const std::vector<float> whole = filled(bucket, 3);
    const auto begin = *rc::gen::inRange<std::size_t>(0, bucket.elements + 1);
    const auto end = *rc::gen::inRange<std::size_t>(begin, bucket.elements + 1);
    std::vector<float> part(end - begin, -1);
    initialize(bucket, 3, begin, part);
    RC_ASSERT(
        std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
  }));
}

TEST(InitializeTest, FollowsTheSpec) {
  ModelConfig config = kOddShapes;
  config.width = 120;
  for (const Bucket& bucket : make_buckets(make_model("gpt", config)->spec())) {
    const std::vector<float> values = filled(bucket, 1);
    std::vector<bool> covered(bucket.elements);
    for (const BucketTensor& tensor : bucket.tensors) {
      double sum = 0, squares = 0;
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.count; ++i) {
        covered[i] = true;
        sum += static_cast<double>(values[i]);
        squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
      const auto n = static_cast<double>(tensor.count);
      const auto std = static_cast<double>(tensor.init.std);
      switch (tensor.init.kind) {
        case Init::Kind::zeros:
          EXPECT_EQ(squares, 0);
          break;
        case Init::Kind::ones:
          EXPECT_EQ(sum, n);
          EXPECT_EQ(squares, n);
          break;
        case Init::Kind::normal:
          EXPECT_NEAR(sum / n, 0, 4 * std / std::sqrt(n)) << tensor.name;
          EXPECT_NEAR(squares / n, std * std, 4 * std * std * std::sqrt(2 / n)) << tensor.name;
          break;
      }
    }
    for (std::size_t i = 0; i < bucket.elements; ++i)
      EXPECT_TRUE(covered[i] || values[i] == 0) << "padding";
  }
}

TEST(InitializeTest, TensorsAndSeedsDiffer) {
  const auto buckets = make_buckets(make_model("gpt", kOddShapes)->spec());
  const Bucket& first = buckets.at(2);   // attention of layer 0
  const Bucket& second = buckets.at(4);  // of layer 1
  EXPECT_NE(filled(first, 1), filled(second, 1));
  EXPECT_NE(filled(first, 1), filled(first, 2));
}

/// Indices beyond 32 bits must not repeat the values of their low words.
TEST(InitializeTest, HugeTensorsDoNotRepeat) {
  constexpr std::size_t kWrap = std::size_t{1} << 32;
  BucketTensor tensor;
  tensor.count = 3 * kWrap;
  tensor.init = {Init::Kind::normal, 1};
  const Bucket bucket{"huge", {0}, {tensor}, tensor.count};
  std::vector<float> low(8), high(8), across(8);
  initialize(bucket, 1, 0, low);
  initialize(bucket, 1, kWrap, high);
  initialize(bucket, 1, kWrap - 4, across);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NE(low[i], high[i]);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(across[4 + i], high[i]);
}

}  // namespace
}  // namespace concertina
