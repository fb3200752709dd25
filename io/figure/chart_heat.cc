// Heat maps: a number and a colour per cell.
#include <algorithm>
#include <cmath>

#include "io/figure/chart_frame.h"

namespace concertina {
namespace {

constexpr double kKeyWidth = 8, kCell = 17;  // points: of the colours' key; the height of a cell

class HeatDrawer {
 public:
  HeatDrawer(const Chart& chart, const HeatMap& map, const AxisScale& scale)
      : chart_(chart), map_(map), scale_(scale), frame_(chart, {}) {}

  Drawing draw() {
    frame_.want_inside(std::clamp(kCell * static_cast<double>(map_.rows.size()), 40.0, 720.0));
    const std::string label = map_.unit.empty() ? map_.label : map_.label + " (" + map_.unit + ")";
    const std::vector<AxisTick> ticks = scale_.ticks(5);
    double widest = 0;
    for (const AxisTick& tick : ticks) widest = std::max(widest, text_width(tick.label, kTickSize));
    const double key = 8 + kKeyWidth + 4 + widest + (label.empty() ? 0 : kLabelSize + 5);
    frame_.keep_right(key);
    frame_.name_both_axes(map_.columns, map_.rows);
    cells();
    draw_key(ticks, widest, label);
    return std::move(frame_.sheet());
  }

 private:
  Colour colour_of(double value) const {
    const double share = (value - scale_.low()) / (scale_.high() - scale_.low());
    return cividis(map_.dark_is_low ? share : 1 - share);
  }

  double value(std::size_t row, std::size_t column) const {
    if (row >= map_.values.size() || column >= map_.values[row].size()) return std::nan("");
    return map_.values[row][column];
  }

  /// At which all numbers fit into their cells; 0 if they would be too small.
  double number_size(double width, double height) const {
    double size = std::min(kTickSize, 0.7 * height);
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0; c < map_.columns.size(); ++c)
        if (scale_.holds(value(r, c)))
          size = std::min(size, (width - 2) / text_width(number(r, c), 1));
    return size < 4 ? 0 : size;
  }

  std::string number(std::size_t row, std::size_t column) const {
    return short_number(value(row, column), std::clamp(map_.digits, 1, 15));
  }

  void cells() {
    const double width =
        (frame_.right() - frame_.left()) / static_cast<double>(map_.columns.size());
    const double height = (frame_.bottom() - frame_.top()) / static_cast<double>(map_.rows.size());
    const double size = number_size(width, height);
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0; c < map_.columns.size(); ++c) {
        RectShape cell{frame_.left() + static_cast<double>(c) * width,
                       frame_.top() + static_cast<double>(r) * height,
                       width,
                       height,
                       {.line = kPaper, .width = 0.6}};
        if (!scale_.holds(value(r, c))) {
          cell.paint.fill = kNoValue;
          frame_.sheet().add(cell);
          frame_.sheet().add(
              hatch_lines(cell, Hatch::rising, 3, {.line = kGridLine, .width = 0.6}));
          continue;
        }
        const Colour colour = colour_of(value(r, c));
        cell.paint.fill = colour;
        frame_.sheet().add(cell);
        if (size > 0)
          frame_.sheet().words({cell.x + width / 2, cell.y + height / 2 + 0.36 * size},
                               number(r, c), size, Anchor::middle, readable_on(colour));
      }
  }

  void draw_key(const std::vector<AxisTick>& ticks, double widest, const std::string& label) {
    const double left = frame_.right() + 8, height = frame_.bottom() - frame_.top();
    Drawing& sheet = frame_.sheet();
    constexpr int kSteps = 64;
    for (int i = 0; i < kSteps; ++i) {
      const double share = (i + 0.5) / kSteps, step = height / kSteps;
      // A little higher than a step: no white lines between them.
      sheet.add(RectShape{left,
                          frame_.bottom() - (i + 1) * step,
                          kKeyWidth,
                          step + (i > 0 ? 0.3 : 0),
                          {.fill = cividis(map_.dark_is_low ? share : 1 - share)}});
    }
    for (const AxisTick& tick : ticks) {
      const double at = frame_.y_of(scale_, tick.value), right = left + kKeyWidth;
      sheet.line({right, at}, {right + 2, at}, kInk, 0.5);
      sheet.words({right + 4, at + 0.36 * kTickSize}, tick.label, kTickSize);
    }
    const double size = std::clamp(
        kLabelSize * height / std::max(1.0, text_width(label, kLabelSize)), 5.5, kLabelSize);
    sheet.words(
        {left + kKeyWidth + 4 + widest + kLabelSize + 1, (frame_.top() + frame_.bottom()) / 2},
        shortened(label, size, height + 8), size, Anchor::middle, kInk, -90);
  }

  const Chart& chart_;
  const HeatMap& map_;
  const AxisScale& scale_;
  ChartFrame frame_;
};

}  // namespace

std::optional<Drawing> draw_marks(const Chart& chart, const HeatMap& map) {
  std::vector<double> values;
  for (std::size_t r = 0; r < std::min(map.rows.size(), map.values.size()); ++r)
    for (std::size_t c = 0; c < std::min(map.columns.size(), map.values[r].size()); ++c)
      values.push_back(map.values[r][c]);
  // The colours end where the values do.
  double low = 0, high = 0;
  bool any = false;
  for (const double value : values)
    if (std::abs(value) < 1e300) {
      low = any ? std::min(low, value) : value;
      high = any ? std::max(high, value) : value;
      any = true;
    }
  if (!any) return std::nullopt;
  const AxisScale scale({.low = low, .high = high}, values);
  return HeatDrawer(chart, map, scale).draw();
}

}  // namespace concertina
