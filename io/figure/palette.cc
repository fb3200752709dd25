#include "io/figure/palette.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace concertina {
namespace {

constexpr std::array<Colour, 8> kSeries{{{0, 114, 178},
                                         {230, 159, 0},
                                         {0, 158, 115},
                                         {213, 94, 0},
                                         {86, 180, 233},
                                         {204, 121, 167},
                                         {70, 70, 70},
                                         {240, 228, 66}}};
// The published table at every seventeenth.
constexpr std::array<Colour, 18> kCividis{{{0, 32, 76},
                                           {0, 42, 102},
                                           {0, 52, 110},
                                           {39, 63, 108},
                                           {60, 74, 107},
                                           {76, 85, 107},
                                           {91, 95, 109},
                                           {104, 106, 112},
                                           {117, 117, 117},
                                           {131, 129, 120},
                                           {146, 140, 120},
                                           {161, 152, 118},
                                           {176, 165, 114},
                                           {192, 177, 109},
                                           {209, 191, 102},
                                           {225, 204, 92},
                                           {243, 219, 79},
                                           {255, 233, 69}}};

/// A polygon of `count` corners, or a star of them if `inner` is below 1.
Shape regular(int count, Spot at, double radius, double turn, const Paint& paint) {
  PathShape path{{{}}, true, paint};
  for (int i = 0; i < count; ++i) {
    const double angle = turn + 2 * std::numbers::pi * i / count;
    path.pieces[0].push_back({at.x + radius * std::sin(angle), at.y - radius * std::cos(angle)});
  }
  return path;
}

}  // namespace

Colour series_colour(std::size_t n) {
  return kSeries[n % kSeries.size()];
}

std::vector<double> series_dash(std::size_t n) {
  static const std::array<std::vector<double>, 5> kDashes{
      {{}, {4, 1.6}, {1.2, 1.4}, {5, 1.4, 1.2, 1.4}, {2.4, 1.2}}};
  return kDashes[n % kDashes.size()];
}

Hatch series_hatch(std::size_t n) {
  constexpr std::array<Hatch, 5> kHatches{Hatch::none, Hatch::rising, Hatch::crossed,
                                          Hatch::falling, Hatch::level};
  return kHatches[n % kHatches.size()];
}

Shape series_marker(std::size_t n, Spot at, double radius, const Paint& paint) {
  constexpr double kPi = std::numbers::pi;
  switch (n % 6) {
    case 0:
      return CircleShape{at, radius, paint};
    case 1:
      return regular(4, at, 1.25 * radius, kPi / 4, paint);
    case 2:
      return regular(3, at, 1.35 * radius, 0, paint);
    case 3:
      return regular(4, at, 1.3 * radius, 0, paint);
    case 4:
      return regular(3, at, 1.35 * radius, kPi, paint);
    default:
      return regular(5, at, 1.25 * radius, 0, paint);
  }
}

Colour cividis(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kCividis.size() - 1);
  const auto step = std::min(static_cast<std::size_t>(at), kCividis.size() - 2);
  return mixed(kCividis[step], kCividis[step + 1], at - static_cast<double>(step));
}

}  // namespace concertina
