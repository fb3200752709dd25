#include "io/images/picture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "io/images/image_codec.h"

namespace concertina {
namespace {

/// Weights are multiples of 2^-22, as in Pillow; this leaves 8 bits for a pixel and 2 spare bits.
constexpr int kWeightBits = 32 - 8 - 2;

struct ScaleFilter {
  double support;  // weights beyond it are 0
  double (*weight)(double distance);
};

double bilinear(double x) {
  return std::max(0.0, 1 - std::abs(x));
}

/// Keys's cubic convolution with a = -0.5.
double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

ScaleFilter filter_of(std::string_view interpolation) {
  return interpolation == kInterpolations[0] ? ScaleFilter{1, bilinear} : ScaleFilter{2, bicubic};
}

/// The weighted sum for one pixel of the scaled row: pixels [first, first + weights.size()).
struct PixelSum {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights{};
};

/// Like precompute_coeffs() and normalize_coeffs_8bpc() in Resample.c.
std::vector<PixelSum> sums_of(std::int64_t from, std::int64_t to, const ScaleFilter& filter) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double wide = std::max(scale, 1.0), support = filter.support * wide;
  std::vector<PixelSum> sums;
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const auto end = std::min(static_cast<std::int64_t>(center + support + 0.5), from);
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t x = first; x < end; ++x)
      total +=
          weights.emplace_back(filter.weight((static_cast<double>(x) - center + 0.5) * (1 / wide)));
    PixelSum& sum = sums.emplace_back(PixelSum{.first = first});
    for (const double weight : weights)
      sum.weights.push_back(static_cast<std::int32_t>((weight < 0 ? -0.5 : 0.5) +
                                                      weight / total * (1 << kWeightBits)));
  }
  return sums;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

void scale_columns(const Picture& from, const std::vector<PixelSum>& sums, Picture& to) {
  const std::uint8_t* row = from.pixels.data();
  std::uint8_t* out = to.pixels.data();
  for (std::int64_t r = 0; r < from.channels * from.height; ++r, row += from.width)
    for (const PixelSum& one : sums) {
      std::int32_t sum = kHalf;
      for (std::size_t i = 0; i < one.weights.size(); ++i)
        sum += row[static_cast<std::size_t>(one.first) + i] * one.weights[i];
      *out++ = rounded(sum);
    }
}

void scale_rows(const Picture& from, const std::vector<PixelSum>& sums, Picture& to) {
  const auto width = static_cast<std::size_t>(from.width);
  std::vector<std::int32_t> row(width);
  std::uint8_t* out = to.pixels.data();
  for (std::int64_t c = 0; c < from.channels; ++c)
    for (const PixelSum& one : sums) {
      std::fill(row.begin(), row.end(), kHalf);
      const std::uint8_t* at = from.pixels.data() + c * from.plane() + one.first * from.width;
      for (const std::int32_t weight : one.weights) {
        for (std::size_t x = 0; x < width; ++x) row[x] += at[x] * weight;
        at += width;
      }
      out = std::transform(row.begin(), row.end(), out, rounded);
    }
}

/// Returns the offset of a centered part, rounded like Python's round(), with ties to even.
std::int64_t middle(std::int64_t whole, std::int64_t part) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2));
}

/// Returns height and width after scaling the shorter side according to `fit`.
std::pair<std::int64_t, std::int64_t> scaled_sides(const PictureFit& fit, std::int64_t height,
                                                   std::int64_t width) {
  const std::int64_t side = fit.shorter_side > 0 ? fit.shorter_side : fit.size;
  const auto [shorter, longer] = std::minmax(height, width);
  const auto scaled =
      static_cast<std::int64_t>(static_cast<double>(side * longer) / static_cast<double>(shorter));
  return height > width ? std::pair(scaled, side) : std::pair(side, scaled);
}

}  // namespace

Picture black_picture(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return {channels, height, width,
          std::vector<std::uint8_t>(static_cast<std::size_t>(channels * height * width))};
}

Picture cut(const Picture& picture, const PictureBox& box) {
  Picture out = black_picture(picture.channels, box.height, box.width);
  const std::int64_t first = std::clamp<std::int64_t>(-box.left, 0, box.width);
  const std::int64_t count =
      std::min(box.left + box.width, picture.width) - std::max<std::int64_t>(box.left, 0);
  for (std::int64_t c = 0; c < out.channels; ++c)
    for (std::int64_t y = 0; y < box.height; ++y) {
      const std::int64_t from = y + box.top;
      if (from < 0 || from >= picture.height || count <= 0) continue;
      std::copy_n(
          picture.pixels.begin() + c * picture.plane() + from * picture.width + box.left + first,
          count, out.pixels.begin() + (c * box.height + y) * box.width + first);
    }
  return out;
}

Picture resized(const Picture& picture, std::int64_t height, std::int64_t width,
                std::string_view interpolation) {
  CONCERTINA_CHECK(picture.plane() > 0 && height > 0 && width > 0,
                   "cannot scale {} x {} to {} x {}", picture.height, picture.width, height, width);
  const ScaleFilter filter = filter_of(interpolation);
  Picture out = picture;
  if (width != picture.width) {
    out = black_picture(picture.channels, picture.height, width);
    scale_columns(picture, sums_of(picture.width, width, filter), out);
  }
  if (height == picture.height) return out;
  Picture whole = black_picture(picture.channels, height, width);
  scale_rows(out, sums_of(picture.height, height, filter), whole);
  return whole;
}

void check_fit(const PictureFit& fit, std::int64_t height, std::int64_t width,
               const std::string& where) {
  if (fit.size == 0 || fit.fit == kFits[1]) return;
  const auto [scaled_height, scaled_width] = scaled_sides(fit, height, width);
  if (static_cast<std::uint64_t>(scaled_height) >
      kMostPixels / static_cast<std::uint64_t>(scaled_width))
    throw_input(fmt::format("an image of {} x {} would be scaled to {} x {}", height, width,
                            scaled_height, scaled_width),
                where,
                fmt::format("use images with at most {} pixels after scaling, or data.fit = "
                            "\"stretch\"",
                            kMostPixels));
}

Picture fitted(Picture picture, const PictureFit& fit) {
  if (fit.size == 0) return picture;
  if (fit.fit == kFits[1]) return resized(picture, fit.size, fit.size, fit.interpolation);
  const auto [height, width] = scaled_sides(fit, picture.height, picture.width);
  return cut(resized(picture, height, width, fit.interpolation),
             {middle(height, fit.size), middle(width, fit.size), fit.size, fit.size});
}

}  // namespace concertina
