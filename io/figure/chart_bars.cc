// Bars: groups of bars with error bars.
#include <algorithm>
#include <cmath>

#include "io/figure/chart_frame.h"
#include "io/figure/chart_marks.h"
#include "io/figure/palette.h"

namespace concertina {
namespace {

struct Bar {
  std::size_t group = 0, slot = 0, style = 0;
  double value = 0, low = 0, high = 0;  // low and high: NaN if there are none
};

/// Those that the axis can hold; `slots`: series with any, in order.
std::vector<Bar> bars_of(const Bars& bars, const AxisScale& y, std::vector<LegendEntry>& legend,
                         std::size_t& slots) {
  std::vector<Bar> result;
  slots = 0;
  for (std::size_t style = 0; style < bars.series.size(); ++style) {
    const BarSeries& series = bars.series[style];
    const std::size_t before = result.size();
    const auto of = [](const std::vector<double>& values, std::size_t i) {
      return i < values.size() ? values[i] : std::nan("");
    };
    for (std::size_t g = 0; g < std::min(bars.groups.size(), series.values.size()); ++g)
      if (y.holds(series.values[g]))
        result.push_back(
            {g, slots, style, series.values[g], of(series.low, g), of(series.high, g)});
    if (result.size() == before) continue;
    ++slots;
    if (!series.name.empty())
      legend.push_back({series.name, style, LegendEntry::Sample::box, false, false});
  }
  return result;
}

std::vector<double> bar_values(const Bars& bars) {
  std::vector<double> values;
  for (const BarSeries& series : bars.series)
    for (std::size_t g = 0; g < std::min(bars.groups.size(), series.values.size()); ++g)
      for (const auto* from : {&series.values, &series.low, &series.high})
        if (g < from->size()) values.push_back((*from)[g]);
  return values;
}

void draw_bar(ChartFrame& frame, const AxisScale& y, const Bar& bar, double left, double width) {
  const auto at = [&](double value) {
    return frame.bottom() - y.share(value) * (frame.bottom() - frame.top());
  };
  // On a logarithmic axis a bar stands on its end.
  const double base = y.holds(0) ? at(0) : frame.bottom(), end = at(bar.value);
  const RectShape box{left,
                      std::min(base, end),
                      width,
                      std::max(0.3, std::abs(base - end)),
                      {.fill = series_colour(bar.style), .line = kInk, .width = 0.4}};
  frame.add(box);
  frame.add(hatch_lines(box, series_hatch(bar.style), 2.6, {.line = kPaper, .width = 0.6}));
  if (!y.holds(bar.low) || !y.holds(bar.high)) return;
  const double middle = left + width / 2, cap = std::min(2.0, width / 3);
  PathShape error{
      {{{middle, at(bar.low)}, {middle, at(bar.high)}}}, false, {.line = kInk, .width = 0.8}};
  for (const double level : {at(bar.low), at(bar.high)})
    error.pieces.push_back({{middle - cap, level}, {middle + cap, level}});
  frame.add(error);
}

}  // namespace

std::optional<Drawing> draw_marks(const Chart& chart, const Bars& bars) {
  ChartAxis axis = chart.y;
  axis.from_zero = axis.scale == Scale::linear;
  const AxisScale y(axis, bar_values(bars));
  std::vector<LegendEntry> legend;
  std::size_t slots = 0;
  const std::vector<Bar> drawn = bars_of(bars, y, legend, slots);
  if (drawn.empty()) return std::nullopt;
  ChartFrame frame(chart, legend);
  frame.name_axis_below(bars.groups, y);
  const double group = (frame.right() - frame.left()) / static_cast<double>(bars.groups.size());
  const double width = std::min(24.0, 0.78 * group / static_cast<double>(slots));
  for (const Bar& bar : drawn) {
    const double middle = frame.left() + (static_cast<double>(bar.group) + 0.5) * group;
    const double from_middle = static_cast<double>(bar.slot) - static_cast<double>(slots) / 2;
    draw_bar(frame, y, bar, middle + from_middle * width, width);
  }
  if (y.holds(0)) {
    const double zero = frame.bottom() - y.share(0) * (frame.bottom() - frame.top());
    frame.add(PathShape{
        {{{frame.left(), zero}, {frame.right(), zero}}}, false, {.line = kInk, .width = 0.7}});
  }
  return frame.drawing();
}

}  // namespace concertina
