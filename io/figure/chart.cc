#include "io/figure/chart.h"

#include <algorithm>
#include <cmath>

#include "io/figure/chart_frame.h"
#include "io/figure/chart_marks.h"
#include "io/figure/palette.h"

namespace concertina {
namespace {

/// What is drawn where there is nothing to draw.
Drawing empty_chart(const Chart& chart) {
  ChartFrame frame(chart, {});
  frame.add(TextShape{{frame.width() / 2, frame.height() / 2},
                      "no data",
                      kLabelSize,
                      Anchor::middle,
                      false,
                      kSoft});
  return frame.drawing();
}

}  // namespace

Drawing draw(const Chart& chart) {
  const auto drawn =
      std::visit([&](const auto& marks) { return draw_marks(chart, marks); }, chart.marks);
  return drawn ? *drawn : empty_chart(chart);
}

std::string svg(const Chart& chart) {
  return svg(draw(chart));
}

std::vector<std::size_t> pareto_front(const std::vector<Spot>& points, BetterEnd x, BetterEnd y) {
  if (x == BetterEnd::neither || y == BetterEnd::neither) return {};
  // As if lower were better on both.
  const auto cost_x = [&](std::size_t i) {
    return x == BetterEnd::lower ? points[i].x : -points[i].x;
  };
  const auto cost_y = [&](std::size_t i) {
    return y == BetterEnd::lower ? points[i].y : -points[i].y;
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (std::isfinite(points[i].x) && std::isfinite(points[i].y)) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(cost_x(a), cost_y(a)) < std::pair(cost_x(b), cost_y(b));
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order)
    if (front.empty() || cost_y(i) < cost_y(front.back())) front.push_back(i);
  if (x == BetterEnd::higher) std::ranges::reverse(front);
  return front;
}

}  // namespace concertina
