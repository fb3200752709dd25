#include "io/images/picture_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

/// The center of the new pixel (y, x) is at (d x + e y + f, a x + b y + c) in the old image.
struct AffineMap {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

/// Like affine_fixed() in Pillow's Geometry.c: 16 fractional bits.
void map_affine(Picture& picture, const AffineMap& map) {
  const auto fixed = [](double v) {
    return static_cast<std::int64_t>(std::floor(v * 65536 + 0.5));
  };
  const std::int64_t a = fixed(map.a), b = fixed(map.b), d = fixed(map.d), e = fixed(map.e);
  const std::int64_t c = fixed(map.c + map.a * 0.5 + map.b * 0.5);
  const std::int64_t f = fixed(map.f + map.d * 0.5 + map.e * 0.5);
  Picture out = black_picture(picture.channels, picture.height, picture.width);
  for (std::int64_t y = 0; y < picture.height; ++y)
    for (std::int64_t x = 0; x < picture.width; ++x) {
      const std::int64_t from_x = (c + y * b + x * a) >> 16, from_y = (f + y * e + x * d) >> 16;
      if (from_x < 0 || from_x >= picture.width || from_y < 0 || from_y >= picture.height) continue;
      for (std::int64_t p = 0; p < picture.channels; ++p)
        out.pixels[static_cast<std::size_t>((p * picture.height + y) * picture.width + x)] =
            picture.pixels[static_cast<std::size_t>((p * picture.height + from_y) * picture.width +
                                                    from_x)];
    }
  picture = std::move(out);
}

/// Like Image.rotate(): counterclockwise about the center. Python rounds sine and cosine.
void rotate(Picture& picture, double degrees) {
  const double angle = -degrees * std::numbers::pi / 180;
  const auto digits = [](double v) { return std::nearbyint(v * 1e15) / 1e15; };
  const double cosine = digits(std::cos(angle)), sine = digits(std::sin(angle));
  const double x = static_cast<double>(picture.width) / 2;
  const double y = static_cast<double>(picture.height) / 2;
  map_affine(picture, {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine,
                       -sine * -x + cosine * -y + y});
}

/// Like Image.blend(): `factor` is the share of `own`.
std::uint8_t blended(std::uint8_t other, std::uint8_t own, float factor) {
  const float value = static_cast<float>(other) + factor * static_cast<float>(own - other);
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
}

/// `other_at(i)` returns the value to blend with pixel i.
template <class Other>
void blend(Picture& picture, double strength, const Other& other_at) {
  const auto factor = static_cast<float>(1 + strength);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    picture.pixels[i] = blended(other_at(i), picture.pixels[i], factor);
}

/// Like Image.convert("L"): ITU-R 601-2 luma.
std::vector<std::uint8_t> grey_of(const Picture& picture) {
  if (picture.channels == 1) return picture.pixels;
  const auto plane = static_cast<std::size_t>(picture.plane());
  const std::uint8_t* red = picture.pixels.data();
  std::vector<std::uint8_t> grey(plane);
  for (std::size_t i = 0; i < plane; ++i)
    grey[i] = static_cast<std::uint8_t>(
        (red[i] * 19595 + red[plane + i] * 38470 + red[2 * plane + i] * 7471 + 0x8000) >> 16);
  return grey;
}

void brighten(Picture& picture, double strength) {
  blend(picture, strength, [](std::size_t) { return std::uint8_t{0}; });
}

void saturate(Picture& picture, double strength) {
  const std::vector<std::uint8_t> grey = grey_of(picture);
  blend(picture, strength, [&](std::size_t i) { return grey[i % grey.size()]; });
}

void contrast(Picture& picture, double strength) {
  const std::vector<std::uint8_t> grey = grey_of(picture);
  const auto sum = std::accumulate(grey.begin(), grey.end(), std::uint64_t{0});
  const auto mean =
      static_cast<std::uint8_t>(static_cast<double>(sum) / static_cast<double>(grey.size()) + 0.5);
  blend(picture, strength, [&](std::size_t) { return mean; });
}

/// Blends with ImageFilter.SMOOTH: weights of 1/13 and, in the center, 5/13; edges are unchanged.
void sharpen(Picture& picture, double strength) {
  Picture smooth = picture;
  for (std::int64_t c = 0; c < picture.channels; ++c)
    for (std::int64_t y = 1; y + 1 < picture.height; ++y)
      for (std::int64_t x = 1; x + 1 < picture.width; ++x) {
        const std::int64_t at = (c * picture.height + y) * picture.width + x;
        int sum = 4 * picture.pixels[static_cast<std::size_t>(at)];
        for (std::int64_t row = -1; row <= 1; ++row)
          for (std::int64_t column = -1; column <= 1; ++column)
            sum += picture.pixels[static_cast<std::size_t>(at + row * picture.width + column)];
        smooth.pixels[static_cast<std::size_t>(at)] =
            static_cast<std::uint8_t>((2 * sum + 13) / 26);
      }
  blend(picture, strength, [&](std::size_t i) { return smooth.pixels[i]; });
}

using Histogram = std::array<std::uint64_t, 256>;
using ValueTable = std::array<std::uint8_t, 256>;

ValueTable identity_table() {
  ValueTable table;
  std::iota(table.begin(), table.end(), std::uint8_t{0});
  return table;
}

/// Maps each channel through the table that `table_of` computes from its histogram.
template <class TableOf>
void map_channels(Picture& picture, const TableOf& table_of) {
  const auto plane = static_cast<std::size_t>(picture.plane());
  for (std::size_t c = 0; c < static_cast<std::size_t>(picture.channels); ++c) {
    const auto channel = std::span(picture.pixels).subspan(c * plane, plane);
    Histogram histogram{};
    for (const std::uint8_t value : channel) ++histogram[value];
    const ValueTable table = table_of(histogram);
    for (std::uint8_t& value : channel) value = table[value];
  }
}

/// Like ImageOps.autocontrast() without a cutoff.
ValueTable widest_table(const Histogram& histogram) {
  ValueTable table = identity_table();
  const auto is_there = [](std::uint64_t count) { return count > 0; };
  const auto low = std::ranges::find_if(histogram, is_there) - histogram.begin();
  const auto high =
      255 - (std::find_if(histogram.rbegin(), histogram.rend(), is_there) - histogram.rbegin());
  if (high <= low) return table;
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = static_cast<double>(-low) * scale;
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] =
        static_cast<std::uint8_t>(std::clamp(static_cast<double>(i) * scale + offset, 0.0, 255.0));
  return table;
}

/// Like ImageOps.equalize().
ValueTable flattest_table(const Histogram& histogram) {
  ValueTable table = identity_table();
  const auto last =
      std::find_if(histogram.rbegin(), histogram.rend(), [](auto n) { return n > 0; });
  const std::uint64_t all = std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
  const std::uint64_t step = (all - *last) / 255;
  if (step == 0) return table;
  std::uint64_t below = step / 2;
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<std::uint8_t>(std::min<std::uint64_t>(below / step, 255));
    below += histogram[i];
  }
  return table;
}

/// Keeps the `bits` highest bits of each value.
void posterize(Picture& picture, double bits) {
  const int mask = ~((1 << (8 - static_cast<int>(bits))) - 1);
  for (std::uint8_t& value : picture.pixels) value = static_cast<std::uint8_t>(value & mask);
}

/// Inverts values of at least `least`.
void solarize(Picture& picture, double least) {
  for (std::uint8_t& value : picture.pixels)
    if (value >= least) value = static_cast<std::uint8_t>(255 - value);
}

using Level = double;
using Side = std::int64_t;
constexpr auto kShear = [](Level level, Side) { return 0.3 * level; };
constexpr auto kShift = [](Level level, Side side) {
  return 150.0 / 331.0 * static_cast<double>(side) * level;
};
constexpr auto kTurn = [](Level level, Side) { return 30 * level; };
constexpr auto kBlend = [](Level level, Side) { return 0.9 * level; };
constexpr auto kBits = [](Level level, Side) { return 8 - std::nearbyint(4 * level); };
constexpr auto kInversion = [](Level level, Side) { return 255 * (1 - level); };

}  // namespace

std::span<const PictureOp> picture_ops() {
  static constexpr PictureOp kOps[] = {
      {"Identity", false, nullptr, [](Picture&, double) {}},
      {"ShearX", true, kShear, [](Picture& it, double by) { map_affine(it, {.b = by}); }},
      {"ShearY", true, kShear, [](Picture& it, double by) { map_affine(it, {.d = by}); }},
      {"TranslateX", true, kShift,
       [](Picture& it, double by) { map_affine(it, {.c = -std::trunc(by)}); }},
      {"TranslateY", true, kShift,
       [](Picture& it, double by) { map_affine(it, {.f = -std::trunc(by)}); }},
      {"Rotate", true, kTurn, rotate},
      {"Brightness", true, kBlend, brighten},
      {"Color", true, kBlend, saturate},
      {"Contrast", true, kBlend, contrast},
      {"Sharpness", true, kBlend, sharpen},
      {"Posterize", false, kBits, posterize},
      {"Solarize", false, kInversion, solarize},
      {"AutoContrast", false, nullptr, [](Picture& it, double) { map_channels(it, widest_table); }},
      {"Equalize", false, nullptr, [](Picture& it, double) { map_channels(it, flattest_table); }}};
  return kOps;
}

const PictureOp& picture_op(std::string_view name) {
  const auto found = std::ranges::find(picture_ops(), name, &PictureOp::name);
  CONCERTINA_CHECK(found != picture_ops().end(), "unknown operation {}", name);
  return *found;
}

double strength_of(const PictureOp& op, int magnitude, const Picture& picture) {
  if (op.strength == nullptr) return 0;
  return op.strength(static_cast<double>(magnitude) / kMostMagnitude,
                     op.name.ends_with('Y') ? picture.height : picture.width);
}

void mirror(Picture& picture) {
  for (auto row = picture.pixels.begin(); row != picture.pixels.end(); row += picture.width)
    std::reverse(row, row + picture.width);
}

}  // namespace concertina
