#include "io/images/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/rng.h"
#include "io/datasets/dataset.h"
#include "io/images/picture_ops.h"

namespace concertina {
namespace {

/// Numbers of the draws, each of four random words; RandAugment operation n uses kRandAugment + n.
enum Draw : std::uint32_t { kMove = 0, kColors = 1, kRandAugment = 2, kPart = 128 };

/// Returns words 0 to 3 of `draw`. Epochs must be below 2^56.
std::array<std::uint32_t, 4> words_of(const SampleAt& at, std::uint32_t draw) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  return Rng(at.seed, Purpose::augment)
      .words(low(at.epoch), low(at.epoch >> 32) << 8 | draw, low(at.sample), low(at.sample >> 32));
}

double uniform(std::uint32_t word, double from, double to) {
  return from + (to - from) * 0x1p-32 * word;
}

/// Returns a uniform position in [0, places).
std::int64_t place(std::uint32_t word, std::int64_t places) {
  return static_cast<std::int64_t>(
      static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(places) >> 32);
}

std::int64_t nearest(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

void move(Picture& picture, const Augmentation& how, const SampleAt& at) {
  const auto word = words_of(at, kMove);
  const std::int64_t most = how.crop, places = 2 * most + 1;
  if (most > 0)
    picture = cut(
        picture, {word[0] % places - most, word[1] % places - most, picture.height, picture.width});
  if (how.flip && (word[2] & 1) != 0) mirror(picture);
}

void turn_and_color(Picture& picture, const Augmentation& how, const SampleAt& at) {
  const std::pair<const char*, double> operations[] = {{"Rotate", how.rotate},
                                                       {"Brightness", how.brightness},
                                                       {"Contrast", how.contrast},
                                                       {"Color", how.saturation}};
  const auto word = words_of(at, kColors);
  for (std::size_t i = 0; i < std::size(operations); ++i)
    if (const auto& [name, most] = operations[i]; most > 0)
      picture_op(name).apply(picture, uniform(word[i], -most, most));
}

}  // namespace

PictureBox random_part(const Picture& picture, double least, const SampleAt& at) {
  constexpr std::uint32_t kAttempts = 10;
  constexpr double kWidest = 4.0 / 3;
  const auto area = static_cast<double>(picture.plane());
  for (std::uint32_t attempt = 0; attempt < kAttempts; ++attempt) {
    const auto word = words_of(at, kPart + attempt);
    const double part = area * uniform(word[0], least, 1);
    const double ratio = std::exp(uniform(word[1], -std::log(kWidest), std::log(kWidest)));
    const std::int64_t height = nearest(std::sqrt(part / ratio));
    const std::int64_t width = nearest(std::sqrt(part * ratio));
    if (height > 0 && height <= picture.height && width > 0 && width <= picture.width)
      return {place(word[2], picture.height - height + 1),
              place(word[3], picture.width - width + 1), height, width};
  }
  const std::int64_t height =
      std::min(picture.height, nearest(static_cast<double>(picture.width) * kWidest));
  const std::int64_t width =
      std::min(picture.width, nearest(static_cast<double>(picture.height) * kWidest));
  return {(picture.height - height) / 2, (picture.width - width) / 2, height, width};
}

Picture augmented(Picture picture, const Augmentation& how, const PictureFit& fit,
                  const SampleAt& at) {
  if (how.scale < 1) {
    const std::int64_t height = fit.size > 0 ? fit.size : picture.height;
    const std::int64_t width = fit.size > 0 ? fit.size : picture.width;
    picture = resized(cut(picture, random_part(picture, how.scale, at)), height, width,
                      fit.interpolation);
  } else {
    picture = fitted(std::move(picture), fit);
  }
  move(picture, how, at);
  turn_and_color(picture, how, at);
  for (int i = 0; i < how.randaugment; ++i) {
    const auto word = words_of(at, kRandAugment + static_cast<std::uint32_t>(i));
    const PictureOp& op =
        picture_ops()[static_cast<std::size_t>(place(word[0], std::ssize(picture_ops())))];
    const double strength = strength_of(op, how.magnitude, picture);
    op.apply(picture, op.is_signed && (word[1] & 1) != 0 ? -strength : strength);
  }
  return picture;
}

}  // namespace concertina
