// Stacked bars: groups of bars, each of parts on top of each other, with their sum.
#include <algorithm>
#include <cmath>

#include "io/figure/chart_frame.h"
#include "io/figure/chart_marks.h"
#include "io/figure/palette.h"

namespace concertina {
namespace {

constexpr double kSumSize = 6.2;  // points
constexpr int kSumDigits = 3;     // significant

bool drawn_part(double value) {
  return std::isfinite(value) && value > 0;
}

double sum_of(const StackedBar& bar, std::size_t parts) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(parts, bar.values.size()); ++i)
    if (drawn_part(bar.values[i])) sum += bar.values[i];
  return sum;
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
      legend.push_back({stacks.parts[part], part, LegendEntry::Sample::box, false, false});
  }
  if (place == LegendAt::right) std::ranges::reverse(legend);
  return legend;
}

class StackDrawer {
 public:
  StackDrawer(ChartFrame& frame, const AxisScale& y, const Stacks& stacks)
      : frame_(frame), y_(y), stacks_(stacks) {}

  Drawing draw() {
    std::size_t slots = 1;
    for (const StackGroup& group : stacks_.groups) slots = std::max(slots, group.bars.size());
    const double group =
        (frame_.right() - frame_.left()) / static_cast<double>(stacks_.groups.size());
    const double width = std::min(28.0, 0.84 * group / static_cast<double>(slots));
    for (std::size_t g = 0; g < stacks_.groups.size(); ++g) {
      const std::vector<StackedBar>& bars = stacks_.groups[g].bars;
      double left = frame_.left() + (static_cast<double>(g) + 0.5) * group -
                    static_cast<double>(bars.size()) / 2 * width;
      for (const StackedBar& bar : bars) draw_bar(bar, left, width), left += width;
    }
    frame_.add(PathShape{{{{frame_.left(), frame_.bottom()}, {frame_.right(), frame_.bottom()}}},
                         false,
                         {.line = kInk, .width = 0.7}});
    return frame_.drawing();
  }

 private:
  double at(double value) const {
    return frame_.bottom() - y_.share(value) * (frame_.bottom() - frame_.top());
  }

  void draw_bar(const StackedBar& bar, double left, double width) {
    const double sum = sum_of(bar, stacks_.parts.size());
    if (!drawn_part(sum) || !y_.holds(sum)) return;
    double below = 0;
    for (std::size_t i = 0; i < std::min(stacks_.parts.size(), bar.values.size()); ++i) {
      if (!drawn_part(bar.values[i])) continue;
      const double above = below + bar.values[i];
      const Colour colour = series_colour(i);
      const RectShape box{
          left + 0.06 * width,
          at(above),
          0.88 * width,
          at(below) - at(above),
          {.fill = bar.pale ? mixed(colour, kPaper, 0.45) : colour, .line = kInk, .width = 0.3}};
      frame_.add(box);
      frame_.add(hatch_lines(box, series_hatch(i), 2.6, {.line = kPaper, .width = 0.6}));
      below = above;
    }
    write_sum(sum, left + width / 2, width);
  }

  /// Over the bar; on end where it is wider than that.
  void write_sum(double sum, double middle, double width) {
    const std::string text = short_number(sum, kSumDigits);
    const double end = at(sum) - 2, length = text_width(text, kSumSize);
    const bool turned = length > width - 1;
    if (end - (turned ? length : 0.72 * kSumSize) < frame_.top() - 2 || width < 0.8 * kSumSize)
      return;
    frame_.add(TextShape{{middle + (turned ? 0.36 * kSumSize : 0), end},
                         text,
                         kSumSize,
                         turned ? Anchor::start : Anchor::middle,
                         false,
                         kInk,
                         turned ? -90.0 : 0.0});
  }

  ChartFrame& frame_;
  const AxisScale& y_;
  const Stacks& stacks_;
};

}  // namespace

std::optional<Drawing> draw_marks(const Chart& chart, const Stacks& stacks) {
  ChartAxis axis = chart.y;
  axis.scale = Scale::linear;
  axis.from_zero = true;
  std::vector<double> sums;
  for (const StackGroup& group : stacks.groups)
    for (const StackedBar& bar : group.bars) {
      const double sum = sum_of(bar, stacks.parts.size());
      constexpr double kRoomForSums = 1.12;
      if (drawn_part(sum)) sums.push_back(kRoomForSums * sum);
    }
  const AxisScale y(axis, sums);
  if (std::ranges::none_of(sums, [&](double sum) { return y.holds(sum); })) return std::nullopt;
  ChartFrame frame(chart, stack_legend(stacks, chart.legend));
  std::vector<std::string> names;
  for (const StackGroup& group : stacks.groups) names.push_back(group.name);
  frame.name_axis_below(names, y);
  return StackDrawer(frame, y, stacks).draw();
}

}  // namespace concertina
