// Lines: curves with confidence bands or error bars.
#include <algorithm>
#include <cmath>
#include <functional>

#include "io/figure/chart_frame.h"
#include "io/figure/chart_marks.h"
#include "io/figure/palette.h"

namespace concertina {
namespace {

constexpr std::size_t kMostMarkers = 24;  // of a line; of more points, some have one
constexpr std::size_t kColumns = 400;     // of more points than four a column, most cannot be seen

/// A point of a curve; `low` and `high` are NaN where it has no interval.
struct CurvePoint {
  double x, y, low, high;
  bool drawn;  // both axes hold it
};

bool holds_all(const AxisScale& scale, std::initializer_list<double> values) {
  return std::ranges::all_of(values, [&](double value) { return scale.holds(value); });
}

std::vector<CurvePoint> points_of(const LineSeries& series, const AxisScale& x,
                                  const AxisScale& y) {
  std::vector<CurvePoint> points;
  const auto of = [](const std::vector<double>& values, std::size_t i) {
    return i < values.size() ? values[i] : std::nan("");
  };
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i)
    points.push_back({series.x[i], series.y[i], of(series.low, i), of(series.high, i),
                      x.holds(series.x[i]) && y.holds(series.y[i])});
  return points;
}

/// Keeps the first, lowest, highest and last point of each column of the picture, and every gap.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, const AxisScale& x) {
  if (points.size() <= 4 * kColumns) return points;
  std::vector<CurvePoint> result;
  const auto column = [&](const CurvePoint& p) {
    return p.drawn ? static_cast<int>(x.share(p.x) * kColumns) : -1;
  };
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(),
                                  [&](const CurvePoint& p) { return column(p) != column(*begin); });
    auto [low, high] = std::minmax_element(
        begin, end, [](const CurvePoint& a, const CurvePoint& b) { return a.y < b.y; });
    if (!begin->drawn) low = high = begin;
    if (high < low) std::swap(low, high);
    auto last = points.end();
    for (const auto& it : {begin, low, high, end - 1})
      if (it != last) result.push_back(*it), last = it;
    begin = end;
  }
  return result;
}

class LinesDrawer {
 public:
  LinesDrawer(ChartFrame& frame, const AxisScale& x, const AxisScale& y)
      : frame_(frame), x_(x), y_(y) {}

  Spot at(double x, double y) const {
    return {frame_.left() + x_.share(x) * (frame_.right() - frame_.left()),
            frame_.bottom() - y_.share(y) * (frame_.bottom() - frame_.top())};
  }

  void band(const std::vector<CurvePoint>& points, Colour colour) {
    each_run(
        points,
        [&](const CurvePoint& p) {
          return p.drawn && holds_all(y_, {p.low, p.high});
        },
        [&](auto begin, auto end) {
          PathShape path{{{}}, true, {.fill = colour, .opacity = 0.22}};
          for (auto it = begin; it != end; ++it) path.pieces[0].push_back(at(it->x, it->high));
          for (auto it = end; it != begin;) {
            --it;
            path.pieces[0].push_back(at(it->x, it->low));
          }
          frame_.add(path);
        });
  }

  void error_bars(const std::vector<CurvePoint>& points, Colour colour) {
    PathShape path{{}, false, {.line = colour, .width = 0.8}};
    constexpr double kCap = 1.8;
    for (const CurvePoint& p : points) {
      if (!p.drawn || !holds_all(y_, {p.low, p.high})) continue;
      const Spot low = at(p.x, p.low), high = at(p.x, p.high);
      path.pieces.push_back({low, high});
      for (const Spot& end : {low, high})
        path.pieces.push_back({{end.x - kCap, end.y}, {end.x + kCap, end.y}});
    }
    if (!path.pieces.empty()) frame_.add(path);
  }

  void line(const std::vector<CurvePoint>& points, const Paint& paint) {
    PathShape path{{}, false, paint};
    each_run(
        points, [](const CurvePoint& p) { return p.drawn; },
        [&](auto begin, auto end) {
          path.pieces.emplace_back();
          for (auto it = begin; it != end; ++it) path.pieces.back().push_back(at(it->x, it->y));
        });
    frame_.add(path);
  }

  void markers(const std::vector<CurvePoint>& points, std::size_t style) {
    const std::size_t every = (points.size() + kMostMarkers - 1) / kMostMarkers;
    for (std::size_t i = 0; i < points.size(); i += every)
      if (points[i].drawn)
        frame_.add(series_marker(style, at(points[i].x, points[i].y), 2.1,
                                 {.fill = series_colour(style), .line = kPaper, .width = 0.4}));
  }

 private:
  using Run = std::vector<CurvePoint>::const_iterator;
  static void each_run(const std::vector<CurvePoint>& points,
                       const std::function<bool(const CurvePoint&)>& in,
                       const std::function<void(Run, Run)>& run) {
    for (auto begin = points.begin(); begin != points.end();) {
      begin = std::find_if(begin, points.end(), in);
      const auto end = std::find_if_not(begin, points.end(), in);
      if (begin != end) run(begin, end);
      begin = end;
    }
  }

  ChartFrame& frame_;
  const AxisScale &x_, &y_;
};

struct Curve {
  const LineSeries* series;
  std::size_t style;
  std::vector<CurvePoint> points;
};

/// Values of the x axis, and of the y axis with the ends of intervals.
std::pair<std::vector<double>, std::vector<double>> values_of(const Lines& lines) {
  std::pair<std::vector<double>, std::vector<double>> values;
  for (const LineSeries& series : lines.series) {
    const std::size_t count = std::min(series.x.size(), series.y.size());
    const auto add = [count](const std::vector<double>& from, std::vector<double>& to) {
      to.insert(to.end(), from.begin(),
                from.begin() + static_cast<std::ptrdiff_t>(std::min(count, from.size())));
    };
    add(series.x, values.first);
    for (const auto* from : {&series.y, &series.low, &series.high}) add(*from, values.second);
  }
  return values;
}

std::vector<Curve> curves_of(const Lines& lines, const AxisScale& x, const AxisScale& y) {
  std::vector<Curve> curves;
  std::size_t style = 0;
  for (const LineSeries& series : lines.series) {
    std::vector<CurvePoint> points = thinned(points_of(series, x, y), x);
    if (std::ranges::any_of(points, &CurvePoint::drawn))
      curves.push_back({&series, style, std::move(points)});
    if (!series.reference) ++style;  // the colour of a series does not depend on others' data
  }
  return curves;
}

std::vector<EndLabel> ends_of(const std::vector<Curve>& curves) {
  std::vector<EndLabel> ends;
  for (const Curve& curve : curves) {
    const auto last = std::find_if(curve.points.rbegin(), curve.points.rend(),
                                   [](const CurvePoint& p) { return p.drawn; });
    if (!curve.series->name.empty())
      ends.push_back({last->y, curve.series->name,
                      curve.series->reference ? kSoft : series_colour(curve.style)});
  }
  return ends;
}

}  // namespace

std::optional<Drawing> draw_marks(const Chart& chart, const Lines& lines) {
  const auto [xs, ys] = values_of(lines);
  const AxisScale x(chart.x, xs), y(chart.y, ys);
  const std::vector<Curve> curves = curves_of(lines, x, y);
  if (curves.empty()) return std::nullopt;
  std::vector<LegendEntry> legend;
  for (const Curve& curve : curves)
    if (!curve.series->name.empty())
      legend.push_back({curve.series->name, curve.style, LegendEntry::Sample::line,
                        curve.series->markers, curve.series->reference});
  ChartFrame frame(chart, legend);
  frame.number_axes(x, y,
                    chart.legend == LegendAt::direct ? ends_of(curves) : std::vector<EndLabel>{});
  LinesDrawer drawer(frame, x, y);
  for (const Curve& curve : curves)
    if (curve.series->band) drawer.band(curve.points, series_colour(curve.style));
  for (const Curve& curve : curves) {
    const bool reference = curve.series->reference;
    const Colour colour = reference ? kSoft : series_colour(curve.style);
    if (!curve.series->band) drawer.error_bars(curve.points, colour);
    drawer.line(curve.points,
                {.line = colour,
                 .width = reference ? 0.8 : 1.3,
                 .dash = reference ? std::vector<double>{3, 2} : series_dash(curve.style)});
    // A single point has no line.
    if ((curve.series->markers || curve.points.size() == 1) && !reference)
      drawer.markers(curve.points, curve.style);
  }
  return frame.drawing();
}

}  // namespace concertina
