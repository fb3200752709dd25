// Scatter plots with a Pareto front, and names beside the points.
#include <algorithm>
#include <array>
#include <cmath>

#include "io/figure/chart_frame.h"

namespace concertina {
namespace {

constexpr double kRadius = 2.3, kNameSize = 6.5;
constexpr double kBeside = 9;  // points from its point, a name needs no line to it

struct Area {
  double left, top, right, bottom;
  bool meets(const Area& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

struct ScatterPoint : NamedPoint {
  std::size_t style;
  bool on_front;
};

struct Leader {
  Spot from, to;
};
struct NamePlace {
  Spot at;  // the name's left end on its base line
  std::optional<Leader> leader;
};

/// Finds places for names where they lie on no point, line or other name.
class NamePlaces {
 public:
  explicit NamePlaces(const ChartFrame& frame) : frame_(frame) {}

  void block(const Area& area) { taken_.push_back(area); }
  /// The steps of a front take the room around them.
  void block_line(Spot from, Spot to) {
    lines_.push_back({std::min(from.x, to.x) - 1, std::min(from.y, to.y) - 1,
                      std::max(from.x, to.x) + 1, std::max(from.y, to.y) + 1});
  }

  /// Where there is room near the point; none if there is not.
  std::optional<NamePlace> find(Spot at, const std::string& name) {
    const double width = text_width(name, kNameSize);
    // Beside it first, then above and below, then farther away.
    for (const double far : {2.0, 9.0, 17.0, 26.0, 36.0, 48.0, 62.0})
      for (const auto& [x, y] : kWays) {
        const double reach = kRadius + far;
        double left = at.x + x * reach - (x < 0 ? width : x == 0 ? width / 2 : 0);
        if (x == 0)  // above or below, it may stand aside
          left = std::clamp(left, frame_.left() + 2,
                            std::max(frame_.left() + 2, frame_.right() - width));
        const double middle = at.y + y * (reach + (x == 0 ? 2.5 : 0));
        const Area area{left - 0.5, middle - kNameSize / 2, left + width + 0.5,
                        middle + kNameSize / 2};
        if (!inside(area) || meets(taken_, area) || meets(lines_, area)) continue;
        NamePlace place{{left, middle + 0.36 * kNameSize}, std::nullopt};
        if (far > kBeside) {
          place.leader = leader(at, area);
          if (crosses_name(*place.leader)) continue;
          block_leader(*place.leader);
        }
        block(area);
        names_.push_back(area);
        return place;
      }
    return std::nullopt;
  }

 private:
  static constexpr std::array<std::pair<double, double>, 8> kWays{
      {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {0.8, -0.8}, {0.8, 0.8}, {-0.8, -0.8}, {-0.8, 0.8}}};

  static bool meets(const std::vector<Area>& areas, const Area& area) {
    return std::ranges::any_of(areas, [&](const Area& other) { return area.meets(other); });
  }

  bool inside(const Area& area) const {
    return area.left > frame_.left() + 1 && area.right < frame_.right() + 1 &&
           area.top > frame_.top() && area.bottom < frame_.bottom() - 1;
  }

  /// From the point's edge to the nearest spot of the name.
  static Leader leader(Spot at, const Area& area) {
    const Spot end{std::clamp(at.x, area.left, area.right),
                   std::clamp(at.y, area.top, area.bottom)};
    const double length = std::hypot(end.x - at.x, end.y - at.y);
    const double edge = length > kRadius ? kRadius / length : 0;
    return {{at.x + edge * (end.x - at.x), at.y + edge * (end.y - at.y)}, end};
  }

  template <typename Visit>
  static void along(const Leader& leader, Visit visit) {
    constexpr int kPieces = 24;
    for (int i = 0; i <= kPieces; ++i) {
      const double share = static_cast<double>(i) / kPieces;
      const Spot spot{leader.from.x + share * (leader.to.x - leader.from.x),
                      leader.from.y + share * (leader.to.y - leader.from.y)};
      visit(Area{spot.x - 0.5, spot.y - 0.5, spot.x + 0.5, spot.y + 0.5});
    }
  }

  bool crosses_name(const Leader& leader) const {
    bool crosses = false;
    along(leader, [&](const Area& area) { crosses = crosses || meets(names_, area); });
    return crosses;
  }

  void block_leader(const Leader& leader) {
    along(leader, [&](const Area& area) { lines_.push_back(area); });
  }

  const ChartFrame& frame_;
  std::vector<Area> taken_, lines_, names_;
};

class ScatterDrawer {
 public:
  ScatterDrawer(ChartFrame& frame, const AxisScale& x, const AxisScale& y, const Scatter& scatter,
                std::vector<ScatterPoint> points)
      : frame_(frame), x_(x), y_(y), scatter_(scatter), points_(std::move(points)) {}

  Drawing draw() {
    NamePlaces places(frame_);
    for (const double level : scatter_.levels)
      if (y_.holds(level)) {
        const double y = frame_.y_of(y_, level);
        const Spot from{frame_.left(), y}, to{frame_.right(), y};
        frame_.sheet().line(from, to, kSoft, 0.5);
        places.block_line(from, to);
      }
    for (const ScatterPoint& p : points_) {
      const Spot spot = at(p.x, p.y);
      places.block({spot.x - kRadius - 0.5, spot.y - kRadius - 0.5, spot.x + kRadius + 0.5,
                    spot.y + kRadius + 0.5});
    }
    front(places);
    for (const ScatterPoint& p : points_) error_bars(p, places);
    // Pale ones first: those of the front lie on top, and choose their names' places first.
    for (const bool on_front : {false, true})
      for (const ScatterPoint& p : points_)
        if (p.on_front == on_front) point(p);
    for (const bool on_front : {true, false})
      for (const ScatterPoint& p : points_)
        if (p.on_front == on_front) name(p, places);
    return frame_.sheet();
  }

 private:
  Spot at(double x, double y) const { return {frame_.x_of(x_, x), frame_.y_of(y_, y)}; }

  bool has_front() const {
    return scatter_.x != BetterEnd::neither && scatter_.y != BetterEnd::neither;
  }

  void front(NamePlaces& places) {
    std::vector<Spot> values;
    for (const ScatterPoint& p : points_) values.push_back({p.x, p.y});
    PathShape path{{{}}, false, {.line = kInk, .width = 0.9}};
    std::vector<Spot>& line = path.pieces[0];
    for (const std::size_t i : pareto_front(values, scatter_.x, scatter_.y)) {
      points_[i].on_front = true;
      const Spot spot = at(points_[i].x, points_[i].y);
      // Between two points of the front lies what the worse one of each axis still reaches.
      if (!line.empty())
        line.push_back(scatter_.x == BetterEnd::lower ? Spot{spot.x, line.back().y}
                                                      : Spot{line.back().x, spot.y});
      line.push_back(spot);
    }
    for (std::size_t i = 1; i < line.size(); ++i) places.block_line(line[i - 1], line[i]);
    if (line.size() > 1) frame_.sheet().add(path);
  }

  /// Names keep off them as off the front.
  void error_bars(const ScatterPoint& p, NamePlaces& places) {
    const Colour colour = mixed(series_colour(p.style), kPaper, 0.35);
    const auto bar = [&](Spot from, Spot to) {
      frame_.sheet().line(from, to, colour, 0.8);
      places.block_line(from, to);
    };
    if (p.x_low && p.x_high && x_.holds(*p.x_low) && x_.holds(*p.x_high))
      bar(at(*p.x_low, p.y), at(*p.x_high, p.y));
    if (p.y_low && p.y_high && y_.holds(*p.y_low) && y_.holds(*p.y_high))
      bar(at(p.x, *p.y_low), at(p.x, *p.y_high));
  }

  void point(const ScatterPoint& p) {
    Colour colour = series_colour(p.style);
    const bool pale = has_front() && !p.on_front;
    if (pale) colour = mixed(colour, kPaper, 0.5);
    frame_.sheet().add(series_marker(p.style, at(p.x, p.y), kRadius,
                                     {.fill = colour, .line = pale ? colour : kInk, .width = 0.5}));
  }

  void name(const ScatterPoint& p, NamePlaces& places) {
    const Spot spot = at(p.x, p.y);
    const std::string text = shortened(p.name, kNameSize, 0.6 * (frame_.right() - frame_.left()));
    if (text.empty()) return;
    const auto place = places.find(spot, text);
    if (!place) return;
    if (place->leader) frame_.sheet().line(place->leader->from, place->leader->to, kSoft, 0.35);
    frame_.sheet().words(place->at, text, kNameSize, Anchor::start,
                         has_front() && !p.on_front ? kSoft : kInk);
  }

  ChartFrame& frame_;
  const AxisScale &x_, &y_;
  const Scatter& scatter_;
  std::vector<ScatterPoint> points_;
};

}  // namespace

std::optional<Drawing> draw_marks(const Chart& chart, const Scatter& scatter) {
  std::vector<double> xs, ys;
  for (const ScatterSeries& series : scatter.series)
    for (const NamedPoint& point : series.points) xs.push_back(point.x), ys.push_back(point.y);
  // An axis counts points that both hold: one off the other axis is not drawn.
  const AxisScale any_x(chart.x, {}), any_y(chart.y, {});
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!any_x.holds(xs[i]) || !any_y.holds(ys[i])) xs[i] = ys[i] = std::nan("");
  for (const ScatterSeries& series : scatter.series)
    for (const NamedPoint& point : series.points) {
      if (!any_x.holds(point.x) || !any_y.holds(point.y)) continue;
      for (const auto& end : {point.x_low, point.x_high}) xs.push_back(end.value_or(point.x));
      for (const auto& end : {point.y_low, point.y_high}) ys.push_back(end.value_or(point.y));
    }
  ys.insert(ys.end(), scatter.levels.begin(), scatter.levels.end());
  constexpr double kPad = 0.09;  // room for names
  const AxisScale x(chart.x, xs, kPad), y(chart.y, ys, kPad);
  std::vector<ScatterPoint> points;
  std::vector<LegendEntry> legend;
  for (std::size_t style = 0; style < scatter.series.size(); ++style) {
    const ScatterSeries& series = scatter.series[style];
    const std::size_t before = points.size();
    for (const NamedPoint& p : series.points)
      if (x.holds(p.x) && y.holds(p.y)) points.push_back({p, style, false});
    if (points.size() > before && !series.name.empty())
      legend.push_back({series.name, look_of_series(style), LegendEntry::Sample::point, true});
  }
  if (points.empty()) return std::nullopt;
  ChartFrame frame(chart, legend);
  frame.number_axes(x, y, {});
  return ScatterDrawer(frame, x, y, scatter, std::move(points)).draw();
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
