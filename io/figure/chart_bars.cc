// Bars: side by side with error bars, or each of parts on top of each other, with their sum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/figure/chart_frame.h"

namespace concertina {
namespace {

constexpr double kSumSize = 6.2;  // points
constexpr int kSumDigits = 3;     // significant

struct Bar {
  std::size_t group = 0, slot = 0, style = 0;
  double value = 0, low = 0, high = 0;  // low and high: NaN if there are none
  std::vector<double> points{};
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
        result.push_back({g, slots, style, series.values[g], of(series.low, g), of(series.high, g),
                          g < series.points.size() ? series.points[g] : std::vector<double>{}});
    if (result.size() == before) continue;
    ++slots;
    if (!series.name.empty())
      legend.push_back({series.name, look_of_series(style), LegendEntry::Sample::box});
  }
  return result;
}

std::vector<double> bar_values(const Bars& bars) {
  std::vector<double> values;
  for (const BarSeries& series : bars.series)
    for (std::size_t g = 0; g < std::min(bars.groups.size(), series.values.size()); ++g)
      for (const auto* from : {&series.values, &series.low, &series.high})
        if (g < from->size()) values.push_back((*from)[g]);
  for (const BarSeries& series : bars.series)
    for (const std::vector<double>& points : series.points)
      values.insert(values.end(), points.begin(), points.end());
  return values;
}

/// Spread over the bar in their order, so that equal ones are seen.
void draw_points(ChartFrame& frame, const AxisScale& y, const Bar& bar, double left, double width) {
  const double radius = std::min(1.4, width / 5);
  for (std::size_t i = 0; i < bar.points.size(); ++i)
    if (y.holds(bar.points[i]))
      frame.sheet().add(CircleShape{
          {left + width * (static_cast<double>(i) + 0.5) / static_cast<double>(bar.points.size()),
           frame.y_of(y, bar.points[i])},
          radius,
          {.fill = kPaper, .line = kInk, .width = 0.5}});
}

void draw_bar(ChartFrame& frame, const AxisScale& y, const Bar& bar, double left, double width) {
  // On a logarithmic axis a bar stands on its end.
  const double base = y.holds(0) ? frame.y_of(y, 0) : frame.bottom();
  const double end = frame.y_of(y, bar.value);
  const SeriesLook look = look_of_series(bar.style);
  add_box({left,
           std::min(base, end),
           width,
           std::max(0.3, std::abs(base - end)),
           {.fill = look.colour, .line = kInk, .width = 0.4}},
          look, 2.6, frame.sheet());
  draw_points(frame, y, bar, left, width);
  if (!y.holds(bar.low) || !y.holds(bar.high)) return;
  const double middle = left + width / 2, cap = std::min(2.0, width / 3);
  const double low = frame.y_of(y, bar.low), high = frame.y_of(y, bar.high);
  PathShape error{{{{middle, low}, {middle, high}}}, false, {.line = kInk, .width = 0.8}};
  for (const double level : {low, high})
    error.pieces.push_back({{middle - cap, level}, {middle + cap, level}});
  frame.sheet().add(error);
}

bool drawn_part(double value) {
  return std::isfinite(value) && value > 0;
}

double sum_of(const StackedBar& bar, std::size_t parts) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(parts, bar.values.size()); ++i)
    if (drawn_part(bar.values[i])) sum += bar.values[i];
  return sum;
}

std::string text_of(const StackedBar& bar, std::size_t parts) {
  return bar.text.empty() ? short_number(sum_of(bar, parts), kSumDigits) : bar.text;
}

/// Their own colours are told apart without hatches.
SeriesLook look_of_part(const Stacks& stacks, std::size_t part) {
  return part < stacks.colours.size() ? SeriesLook{.colour = stacks.colours[part]}
                                      : look_of_series(part);
}

/// Parts that can be seen in any bar, the uppermost first if the legend stands beside the bars.
std::vector<LegendEntry> stack_legend(const Stacks& stacks, LegendAt place) {
  constexpr double kLeastSeen = 1e-3;  // of the highest bar
  double highest = 0;
  for (const StackGroup& group : stacks.groups)
    for (const StackedBar& bar : group.bars)
      highest = std::max(highest, sum_of(bar, stacks.parts.size()));
  std::vector<LegendEntry> legend;
  for (std::size_t part = 0; part < stacks.parts.size(); ++part) {
    const auto has = [&](const StackedBar& bar) {
      return part < bar.values.size() && drawn_part(bar.values[part]) &&
             bar.values[part] >= kLeastSeen * highest;
    };
    if (!stacks.parts[part].empty() &&
        std::ranges::any_of(stacks.groups, [&](const StackGroup& group) {
          return std::ranges::any_of(group.bars, has);
        }))
      legend.push_back({stacks.parts[part], look_of_part(stacks, part), LegendEntry::Sample::box});
  }
  if (place == LegendAt::right) std::ranges::reverse(legend);
  if (!stacks.mark.empty())
    legend.push_back({stacks.mark, {.colour = kInk}, LegendEntry::Sample::box});
  return legend;
}

class StackDrawer {
 public:
  StackDrawer(ChartFrame& frame, const AxisScale& values, const Stacks& stacks,
              const std::string& unit, double text_end)
      : frame_(frame), values_(values), stacks_(stacks), unit_(unit), text_end_(text_end) {}

  Drawing draw() {
    std::size_t slots = 1;
    for (const StackGroup& group : stacks_.groups) slots = std::max(slots, group.bars.size());
    const double begin = stacks_.level ? frame_.top() : frame_.left();
    const double room = stacks_.level ? frame_.bottom() - begin : frame_.right() - begin;
    const double group = room / static_cast<double>(stacks_.groups.size());
    const double width = std::min(28.0, 0.84 * group / static_cast<double>(slots));
    for (std::size_t g = 0; g < stacks_.groups.size(); ++g) {
      const std::vector<StackedBar>& bars = stacks_.groups[g].bars;
      double at = begin + (static_cast<double>(g) + 0.5) * group -
                  static_cast<double>(bars.size()) / 2 * width;
      for (const StackedBar& bar : bars)
        draw_bar(stacks_.groups[g].name, bar, at, width), at += width;
    }
    frame_.sheet().line({frame_.left(), stacks_.level ? frame_.top() : frame_.bottom()},
                        {stacks_.level ? frame_.left() : frame_.right(), frame_.bottom()}, kInk,
                        0.7);
    return frame_.sheet();
  }

 private:
  /// From one value to another, along the axis of values; `at`: across it.
  RectShape box(double from, double to, double at, double width, const Paint& paint) const {
    if (stacks_.level) {
      const double left = frame_.x_of(values_, from);
      return {left, at, frame_.x_of(values_, to) - left, width, paint};
    }
    const double top = frame_.y_of(values_, to);
    return {at, top, width, frame_.y_of(values_, from) - top, paint};
  }

  void draw_bar(const std::string& name, const StackedBar& bar, double at, double width) {
    const double sum = sum_of(bar, stacks_.parts.size());
    if (!drawn_part(sum) || !values_.holds(sum)) return;
    double below = 0;
    for (std::size_t i = 0; i < std::min(stacks_.parts.size(), bar.values.size()); ++i) {
      if (!drawn_part(bar.values[i])) continue;
      const double above = below + bar.values[i];
      const SeriesLook look = look_of_part(stacks_, i);
      RectShape part = box(below, above, at + 0.06 * width, 0.88 * width,
                           {.fill = bar.pale ? mixed(look.colour, kPaper, 0.45) : look.colour,
                            .line = kInk,
                            .width = 0.3});
      part.title = fmt::format("{}, {}: {} {}", name, stacks_.parts[i],
                               short_number(bar.values[i], kSumDigits), unit_);
      add_box(part, look, 2.6, frame_.sheet());
      below = above;
    }
    if (bar.mark && values_.holds(*bar.mark)) {
      RectShape mark = box(*bar.mark, *bar.mark, at, width, {.fill = kInk});
      (stacks_.level ? mark.width : mark.height) = 1.4;
      mark.title = fmt::format("{}, {}: {} {}", name, stacks_.mark,
                               short_number(*bar.mark, kSumDigits), unit_);
      frame_.sheet().add(mark);
    }
    write_sum(text_of(bar, stacks_.parts.size()), sum, at + width / 2, width);
  }

  /// Over the bar; on end where it is wider than that.
  void write_sum(const std::string& text, double sum, double middle, double width) {
    if (width < 0.8 * kSumSize) return;
    if (stacks_.level) {
      const double left = frame_.x_of(values_, sum) + 4;
      return frame_.sheet().words({left, middle + 0.36 * kSumSize},
                                  shortened(text, kSumSize, text_end_ - left), kSumSize);
    }
    const double end = frame_.y_of(values_, sum) - 2, length = text_width(text, kSumSize);
    const bool turned = length > width - 1;
    if (end - (turned ? length : 0.72 * kSumSize) < frame_.top() - 2) return;
    frame_.sheet().words({middle + (turned ? 0.36 * kSumSize : 0), end}, text, kSumSize,
                         turned ? Anchor::start : Anchor::middle, kInk, turned ? -90 : 0);
  }

  ChartFrame& frame_;
  const AxisScale& values_;
  const Stacks& stacks_;
  const std::string& unit_;
  const double text_end_;  // of texts beside bars
};

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
  if (const double zero = y.holds(0) ? frame.y_of(y, 0) : 0; y.holds(0))
    frame.sheet().line({frame.left(), zero}, {frame.right(), zero}, kInk, 0.7);
  return frame.sheet();
}

std::optional<Drawing> draw_marks(const Chart& chart, const Stacks& stacks) {
  ChartAxis axis = stacks.level ? chart.x : chart.y;
  axis.scale = Scale::linear;
  axis.from_zero = true;
  std::vector<double> values;
  std::vector<std::string> names;
  double widest = 0;
  bool any = false;
  for (const StackGroup& group : stacks.groups) {
    names.push_back(group.name);
    for (const StackedBar& bar : group.bars) {
      const double sum = sum_of(bar, stacks.parts.size());
      const double room_for_sums = stacks.level ? 1 : 1.12;
      if (drawn_part(sum)) values.push_back(room_for_sums * sum);
      if (bar.mark) values.push_back(*bar.mark);
      any |= drawn_part(sum) && AxisScale(axis, {}).holds(sum);
      widest = std::max(widest, text_width(text_of(bar, stacks.parts.size()), kSumSize));
    }
  }
  if (!any) return std::nullopt;
  const AxisScale scale(axis, values);
  ChartFrame frame(chart, stack_legend(stacks, chart.legend));
  const double text_end = frame.right();
  if (stacks.level) {
    constexpr double kRow = 14, kMostRows = 16, kNarrowRow = 8;  // points
    const auto rows = static_cast<double>(names.size());
    frame.keep_right(std::min(widest, 0.4 * (frame.right() - frame.left())) + 6);
    frame.want_inside(rows * (rows <= kMostRows ? kRow : kNarrowRow));
    frame.name_axis_beside(names, scale);
  } else {
    frame.name_axis_below(names, scale);
  }
  return StackDrawer(frame, scale, stacks, axis.unit, text_end).draw();
}

}  // namespace concertina
