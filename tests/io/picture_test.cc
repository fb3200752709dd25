// Compares pictures with those of Pillow and torchvision: tests/golden/make_pictures.py.
#include "io/images/picture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "io/images/augment.h"
#include "io/images/picture_ops.h"
#include "tests/io/webdataset_files.h"

namespace concertina {
namespace {

Picture picture_of(const nlohmann::json& shape) {
  Picture picture = black_picture(shape[0], shape[1], shape[2]);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
    const auto x = static_cast<std::int64_t>(i) % picture.width;
    const auto y = static_cast<std::int64_t>(i) / picture.width % picture.height;
    const auto c = static_cast<std::int64_t>(i) / picture.plane();
    picture.pixels[i] =
        static_cast<std::uint8_t>(40 + (x * 11 + y * 7 + c * 50 + x * y * 13 % 31) % 161);
  }
  return picture;
}

/// Largest error of a pixel, in levels of 255: rounding may differ with the instruction set.
constexpr int kOff = 1;

class Golden : public testing::Test {
 protected:
  void expect(const Picture& got, const nlohmann::json& row) {
    SCOPED_TRACE(fmt::format("{} {} {}", row.value("name", ""), row.value("strength", 0.0),
                             row["shape"].dump()));
    const std::string pixels = from_hex(row["pixels"].get<std::string>());
    ASSERT_EQ((std::vector{got.channels, got.height, got.width}),
              row["shape"].get<std::vector<std::int64_t>>());
    ASSERT_EQ(got.pixels.size(), pixels.size());
    int off = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i)
      off = std::max(off, std::abs(got.pixels[i] - static_cast<unsigned char>(pixels[i])));
    EXPECT_LE(off, kOff);
    exact_ += off == 0 ? 1 : 0;
    ++all_;
  }
  void TearDown() override { std::printf("%d of %d pictures to the bit\n", exact_, all_); }

  const nlohmann::json cases_ = nlohmann::json::parse(
      std::ifstream(std::string(CONCERTINA_SOURCE) + "/tests/golden/pictures.json"));
  int exact_ = 0, all_ = 0;
};

TEST_F(Golden, ScaledPicturesAreThoseOfPillow) {
  ASSERT_EQ(cases_["resized"].size(), 10U);
  for (const auto& row : cases_["resized"])
    expect(resized(picture_of(row["picture"]), row["height"], row["width"],
                   row["interpolation"].get<std::string>()),
           row);
}

TEST_F(Golden, SquaresAreThoseOfTorchvision) {
  ASSERT_EQ(cases_["fitted"].size(), 6U);
  for (const auto& row : cases_["fitted"])
    expect(fitted(picture_of(row["picture"]), {row["size"], row["resize"], row["fit"]}), row);
}

TEST_F(Golden, OperationsAreThoseOfTorchvision) {
  std::set<std::string> names;
  for (const auto& row : cases_["changed"]) {
    Picture picture = picture_of(row["picture"]);
    picture_op(*names.insert(row["name"]).first).apply(picture, row["strength"]);
    expect(picture, row);
  }
  EXPECT_EQ(names.size(), picture_ops().size());
}

TEST_F(Golden, StrengthsAreThoseOfTorchvision) {
  const Picture picture = picture_of({3, 20, 17});
  for (const PictureOp& op : picture_ops()) {
    const nlohmann::json& strengths = cases_["strengths"];
    ASSERT_EQ(strengths.contains(op.name), op.strength != nullptr) << op.name;
    if (op.strength == nullptr) continue;
    for (int magnitude = 0; magnitude <= kMostMagnitude; ++magnitude)
      EXPECT_NEAR(
          strength_of(op, magnitude, picture),
          strengths[std::string(op.name)][static_cast<std::size_t>(magnitude)].get<double>(), 2e-5)
          << op.name << " " << magnitude;
  }
}

TEST(Augmentation, PartsHaveTheirAreaAndSides) {
  for (const auto& [height, width] : {std::pair{60, 80}, {90, 70}, {1, 1}}) {
    const Picture picture = black_picture(1, height, width);
    std::set<std::int64_t> tops;
    for (std::uint64_t sample = 0; sample < 500; ++sample) {
      const PictureBox part = random_part(picture, 0.2, {.sample = sample, .seed = 3, .epoch = 1});
      tops.insert(part.top);
      ASSERT_TRUE(part.top >= 0 && part.left >= 0 && part.height > 0 && part.width > 0 &&
                  part.top + part.height <= height && part.left + part.width <= width);
      if (height == 1) continue;
      const auto ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
      EXPECT_GT(ratio, 0.72);
      EXPECT_LT(ratio, 1.39);
      EXPECT_TRUE(height != 60 || static_cast<double>(part.height * part.width) > 0.19 * 60 * 80);
    }
    EXPECT_GE(tops.size(), height == 1 ? 1U : 20U);
  }
}

/// An option's draws depend only on seed, epoch and sample, not on other options.
TEST(Augmentation, IsAPureFunctionOfSeedEpochAndSample) {
  const Picture picture = picture_of({3, 24, 24});
  const Augmentation all{.crop = 2,
                         .flip = true,
                         .scale = 0.5,
                         .rotate = 20,
                         .brightness = 0.4,
                         .contrast = 0.4,
                         .saturation = 0.4,
                         .randaugment = 2};
  const PictureFit fit{.size = 16};
  const auto at = [](std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) {
    return SampleAt{.sample = sample, .seed = seed, .epoch = epoch};
  };
  const auto seen = [&](const Augmentation& how, const SampleAt& where) {
    return augmented(picture, how, fit, where).pixels;
  };
  std::set<std::vector<std::uint8_t>> different;
  for (std::uint64_t i = 0; i < 4; ++i)
    for (const SampleAt& where : {at(1 + i, 0, 0), at(1, i, 9), at(1, i << 32, 9), at(1, 0, 7 + i)})
      different.insert(seen(all, where));
  EXPECT_EQ(different.size(), 14U) << "of 16, three of which are (1, 0, 9)";
  EXPECT_EQ(seen(all, at(5, 6, 7)), seen(all, at(5, 6, 7)));
  Augmentation turned{.rotate = 30}, dark{.brightness = 0.9}, both{.rotate = 30, .brightness = 0.9};
  Picture one = fitted(picture, fit);
  one = augmented(augmented(one, turned, {}, at(5, 6, 7)), dark, {}, at(5, 6, 7));
  EXPECT_EQ(one.pixels, seen(both, at(5, 6, 7)));
}

}  // namespace
}  // namespace concertina
