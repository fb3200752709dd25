#include "io/figure/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/text/utf8.h"

namespace concertina {
namespace {

// Widths of Helvetica for ' ' to '~', in 1/1000 of the size (Adobe's font metrics).
constexpr std::array<int, 95> kWidths{
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};
constexpr double kWidestFont = 1.14, kBold = 1.1;

/// The segment of the line x + slope * y = c inside the rectangle, if any.
void add_diagonal(const RectShape& area, double c, int slope, PathShape& path) {
  const double left = area.x, right = area.x + area.width;
  const double top = area.y, bottom = area.y + area.height;
  double x_top = c - slope * top, x_bottom = c - slope * bottom;
  if (x_top > x_bottom) std::swap(x_top, x_bottom);
  const double from = std::max(left, x_top), to = std::min(right, x_bottom);
  if (to - from < 0.05) return;
  path.pieces.push_back({{from, (c - from) / slope}, {to, (c - to) / slope}});
}

void add_diagonals(const RectShape& area, int slope, double gap, PathShape& path) {
  const double one = area.x + slope * area.y, two = one + slope * area.height;
  const double low = std::min(one, two), high = std::max(one, two) + area.width;
  // The step is along x: the lines stand `gap` apart.
  const double step = gap * std::sqrt(2.0);
  for (double k = std::floor(low / step); k * step < high; ++k)
    add_diagonal(area, k * step, slope, path);
}

}  // namespace

double text_width(std::string_view text, double size, bool bold) {
  double width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::uint32_t code = next_code(text, i).value_or('?');
    width += code >= ' ' && code <= '~' ? kWidths[code - ' '] : code < 0x1100 ? 600 : 1000;
  }
  return width / 1000 * size * kWidestFont * (bold ? kBold : 1);
}

std::string shortened(const std::string& text, double size, double width) {
  if (text_width(text, size) <= width) return text;
  std::size_t fits = 0;
  for (std::size_t i = 0; i < text.size();) {
    next_code(text, i);
    if (text_width(text.substr(0, i) + "...", size) > width) break;
    fits = i;
  }
  return fits == 0 ? std::string() : text.substr(0, fits) + "...";
}

std::vector<std::string> wrapped(const std::string& text, double size, double width, bool bold) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    if (!lines.empty() && text_width(lines.back() + " " + word, size, bold) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(shortened(word, bold ? size * kBold : size, width));
  }
  return lines;
}

PathShape hatch_lines(const RectShape& area, Hatch hatch, double gap, const Paint& paint) {
  PathShape path{{}, false, paint};
  if (!(area.width > 0 && area.height > 0 && gap > 0)) return path;
  if (hatch == Hatch::rising || hatch == Hatch::crossed) add_diagonals(area, 1, gap, path);
  if (hatch == Hatch::falling || hatch == Hatch::crossed) add_diagonals(area, -1, gap, path);
  if (hatch == Hatch::level)
    for (double y = area.y + gap / 2; y < area.y + area.height; y += gap)
      path.pieces.push_back({{area.x, y}, {area.x + area.width, y}});
  return path;
}

}  // namespace concertina
