// Lines: curves with confidence bands or error bars.
#include <algorithm>
#include <cmath>
#include <functional>

#include "io/figure/chart_frame.h"

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

struct Curve {
  const LineSeries* series;
  SeriesLook look;
  std::vector<CurvePoint> points;
};

class LinesDrawer {
 public:
  LinesDrawer(ChartFrame& frame, const AxisScale& x, const AxisScale& y)
      : frame_(frame), x_(x), y_(y) {}

  void band(const Curve& curve) {
    each_run(
        curve.points,
        [&](const CurvePoint& p) {
          return p.drawn && holds_all(y_, {p.low, p.high});
        },
        [&](auto begin, auto end) {
          PathShape path{{{}}, true, {.fill = curve.look.colour, .opacity = 0.22}};
          for (auto it = begin; it != end; ++it) path.pieces[0].push_back(at(it->x, it->high));
          for (auto it = end; it != begin;) {
            --it;
            path.pieces[0].push_back(at(it->x, it->low));
          }
          frame_.sheet().add(path);
        });
  }

  void draw(const Curve& curve) {
    if (!curve.series->band) error_bars(curve);
    PathShape path{{},
                   false,
                   {.line = curve.look.colour,
                    .width = curve.look.width,
                    .dash = curve.look.dash,
                    .opacity = curve.series->faint ? 0.45 : 1},
                   curve.series->name};
    each_run(
        curve.points, [](const CurvePoint& p) { return p.drawn; },
        [&](auto begin, auto end) {
          path.pieces.emplace_back();
          for (auto it = begin; it != end; ++it) path.pieces.back().push_back(at(it->x, it->y));
        });
    frame_.sheet().add(path);
    // A single point has no line.
    const bool markers = curve.series->markers || curve.points.size() == 1;
    if (!markers || curve.series->reference || curve.series->faint) return;
    const std::size_t every = (curve.points.size() + kMostMarkers - 1) / kMostMarkers;
    for (std::size_t i = 0; i < curve.points.size(); i += every)
      if (curve.points[i].drawn)
        frame_.sheet().add(
            series_marker(curve.look.marker, at(curve.points[i].x, curve.points[i].y), 2.1,
                          {.fill = curve.look.colour, .line = kPaper, .width = 0.4}));
  }

  /// Words above the chart, as far as they have room beside each other.
  void marks(const std::vector<LineMark>& marks) {
    double until = 0;
    for (const LineMark& mark : marks) {
      if (!x_.holds(mark.x)) continue;
      const double at = frame_.x_of(x_, mark.x), half = text_width(mark.label, kTickSize) / 2;
      frame_.sheet().add(RectShape{at - 0.35,
                                   frame_.top(),
                                   0.7,
                                   frame_.bottom() - frame_.top(),
                                   {.fill = kInk},
                                   mark.title});
      if (at - half < until + 1 || at + half > frame_.right() + 5) continue;
      frame_.sheet().words({at, frame_.top() - 3.5}, mark.label, kTickSize, Anchor::middle);
      until = at + half;
    }
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

  Spot at(double x, double y) const { return {frame_.x_of(x_, x), frame_.y_of(y_, y)}; }

  void error_bars(const Curve& curve) {
    PathShape path{{}, false, {.line = curve.look.colour, .width = 0.8}};
    constexpr double kCap = 1.8;
    for (const CurvePoint& p : curve.points) {
      if (!p.drawn || !holds_all(y_, {p.low, p.high})) continue;
      const Spot low = at(p.x, p.low), high = at(p.x, p.high);
      path.pieces.push_back({low, high});
      for (const Spot& end : {low, high})
        path.pieces.push_back({{end.x - kCap, end.y}, {end.x + kCap, end.y}});
    }
    if (!path.pieces.empty()) frame_.sheet().add(path);
  }

  ChartFrame& frame_;
  const AxisScale &x_, &y_;
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
    SeriesLook look = series.reference ? SeriesLook{.colour = kSoft, .dash = {3, 2}, .width = 0.8}
                                       : look_of_series(series.look.value_or(style));
    if (series.faint) look.width = 0.7;
    if (std::ranges::any_of(points, &CurvePoint::drawn))
      curves.push_back({&series, look, std::move(points)});
    // The colour of a series does not depend on others' data.
    if (!series.reference && !series.look) ++style;
  }
  return curves;
}

std::vector<EndLabel> ends_of(const std::vector<Curve>& curves) {
  std::vector<EndLabel> ends;
  for (const Curve& curve : curves) {
    const auto last = std::find_if(curve.points.rbegin(), curve.points.rend(),
                                   [](const CurvePoint& p) { return p.drawn; });
    if (!curve.series->name.empty())
      ends.push_back({last->y, curve.series->name, curve.look.colour});
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
      legend.push_back({curve.series->name, curve.look, LegendEntry::Sample::line,
                        curve.series->markers && !curve.series->reference});
  ChartFrame frame(chart, legend);
  if (!lines.marks.empty()) frame.keep_top(kTickSize + 3);
  frame.number_axes(x, y,
                    chart.legend == LegendAt::direct ? ends_of(curves) : std::vector<EndLabel>{});
  LinesDrawer drawer(frame, x, y);
  for (const Curve& curve : curves)
    if (curve.series->band) drawer.band(curve);
  for (const Curve& curve : curves) drawer.draw(curve);
  drawer.marks(lines.marks);
  return frame.sheet();
}

}  // namespace concertina
