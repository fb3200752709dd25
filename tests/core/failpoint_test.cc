#include "core/failpoint.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "core/digest.h"
#include "tests/errors.h"

namespace concertina {
namespace {

class Failpoints : public testing::Test {
 protected:
  void TearDown() override { arm_failpoints(""); }
};

TEST_F(Failpoints, HappenWhereTheTextSaysAndAsOften) {
  EXPECT_FALSE(failpoint("weight-bit", {{"step", 3}, {"rank", 1}}));
  arm_failpoints("weight-bit@3:rank=1,times=2;optimizer-bit");
  EXPECT_FALSE(failpoint("weight-bit", {{"step", 2}, {"rank", 1}}));
  EXPECT_FALSE(failpoint("weight-bit", {{"step", 3}, {"rank", 0}}));
  EXPECT_FALSE(failpoint("weight-bit", {{"rank", 1}})) << "the step must be known";
  EXPECT_TRUE(failpoint("weight-bit", {{"step", 3}, {"rank", 1}}));
  EXPECT_TRUE(failpoint("weight-bit", {{"step", 3}, {"rank", 1}}));
  EXPECT_FALSE(failpoint("weight-bit", {{"step", 3}, {"rank", 1}}));
  EXPECT_TRUE(failpoint("optimizer-bit", {{"step", 9}, {"rank", 0}}));
  EXPECT_TRUE(failpoint("optimizer-bit", {{"step", 9}, {"rank", 1}})) << "once on each rank";
  EXPECT_FALSE(failpoint("optimizer-bit", {{"step", 9}, {"rank", 1}}));
  arm_failpoints("");
  EXPECT_FALSE(failpoint("optimizer-bit", {{"step", 9}, {"rank", 7}}));
}

TEST_F(Failpoints, OtherTextIsRefused) {
  for (const char* text : {"weight", "weight-bit@x", "weight-bit:rank", "weight-bit:rank=",
                           "weight-bit@3:rank=1x", "weight-bit;;optimizer-bit"}) {
    const Error error = input_error([&] { arm_failpoints(text); });
    expect_has(error.where(), kFailpointsVariable);
  }
}

TEST(Digest, AnyBitCountsInAnyPiece) {
  std::vector<float> values(3'000'001, 1.0F);  // more than two pieces
  const auto digest = [&](std::size_t count) {
    std::vector<std::byte> scratch = digest_scratch(host_memory());
    return digest_of(host_memory(), {values.data(), count, DType::f32}, scratch);
  };
  const std::uint64_t whole = digest(values.size());
  EXPECT_NE(whole, digest(values.size() - 1));
  for (const std::size_t at : {std::size_t{0}, std::size_t{1'048'575}, std::size_t{1'048'576},
                               std::size_t{2'500'000}, values.size() - 1})
    for (int bit = 0; bit < 32; bit += 5) {
      const float before = values[at];
      values[at] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(before) ^
                                        1U << static_cast<unsigned>(bit));
      EXPECT_NE(digest(values.size()), whole) << at << ", bit " << bit;
      values[at] = before;
    }
  EXPECT_EQ(digest(values.size()), whole);
}

}  // namespace
}  // namespace concertina
