#include "experiments/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/figure/drawing.h"

namespace concertina::html {
namespace {

constexpr int kColumns = 500;  // of a plot: more points than two a column cannot be seen
constexpr int kMostTicks = 100;

double share(double value, double low, double high) {
  return high > low ? (value - low) / (high - low) : 0;
}

/// The first, lowest, highest and last finite point of each column, in order.
std::vector<Point> thinned(std::vector<Point> points, double left, double right) {
  std::erase_if(points, [](const Point& p) { return !drawable(p.x) || !drawable(p.y); });
  if (points.size() <= 4 * kColumns) return points;
  std::vector<Point> result;
  const auto column = [&](const Point& p) {
    return static_cast<int>(share(p.x, left, right) * kColumns);
  };
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(),
                                  [&](const Point& p) { return column(p) != column(*begin); });
    auto [low, high] =
        std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    if (high < low) std::swap(low, high);
    for (const auto& it : {begin, low, high, end - 1})
      if (result.empty() || result.back().x != it->x || result.back().y != it->y)
        result.push_back(*it);
    begin = end;
  }
  return result;
}

std::string path(const Series& series, const Plot& plot) {
  std::string data, dots;
  double last = 0, first = 0;
  for (const Point& point : thinned(series.points, plot.left, plot.right)) {
    const double x = 1000 * share(point.x, plot.left, plot.right);
    const double y = 1000 * (1 - share(point.y, plot.low, plot.high));
    if (data.empty())
      data = fmt::format("M{:.2f} {:.2f}", x, y), first = x;
    else if (series.steps)
      data += fmt::format("L{:.2f} {:.2f}L{:.2f} {:.2f}", x, last, x, y);
    else
      data += fmt::format("L{:.2f} {:.2f}", x, y);
    if (series.dots) dots += fmt::format("M{:.2f} {:.2f}h0", x, y);
    last = y;
  }
  if (series.area && !data.empty()) data += fmt::format("V1000H{:.2f}z", first);
  std::string text = fmt::format(
      "<path class=\"{} {}\"{} d=\"{}\"/>", series.area ? "area" : "line", series.style,
      series.name.empty() ? "" : fmt::format(" data-name=\"{}\"", escape(series.name)), data);
  if (!dots.empty())
    text += fmt::format("<path class=\"line dots {}\" d=\"{}\"/>", series.style, dots);
  return text;
}

}  // namespace

bool drawable(double value) {
  return std::abs(value) < 1e300;
}

std::string escape(std::string_view text) {
  return xml_text(text);
}

std::string percent(double share) {
  return fmt::format("{:.3f}%", 100 * share);
}

std::string share_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string key(std::string_view style, std::string_view text) {
  return fmt::format(
      "<span class=\"key\"><svg><rect class=\"{}\" width=\"14\" height=\"14\"/></svg>{}</span>",
      style, escape(text));
}

std::vector<double> ticks(double low, double high, int count) {
  if (!(high > low) || !std::isfinite(high - low)) return {low};
  const double rough = (high - low) / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= rough) step = factor * power;
  // Counted in whole numbers: where all values are nearly the same, adding a step changes nothing.
  std::vector<double> result;
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i < kMostTicks; ++i) {
    const double tick = (first + i) * step;
    if (!(tick <= high + 1e-6 * step)) break;
    // Steps below the last digit of such a number make no other one.
    if (result.empty() || tick > result.back()) result.push_back(tick + 0.0);  // no -0
  }
  return result;
}

std::string tick_label(double value, double step) {
  if (std::abs(value) >= 1e9 || (step < 1e-5 && value != 0)) return fmt::format("{:.4g}", value);
  const double scale = std::abs(value) >= 1e6 ? 1e6 : std::abs(value) >= 1e4 ? 1e3 : 1;
  const char* suffix = scale == 1e6 ? "M" : scale == 1e3 ? "k" : "";
  const int digits =
      std::clamp(static_cast<int>(std::ceil(-std::log10(step / scale) - 1e-9)), 0, 9);
  return fmt::format("{:.{}f}{}", value / scale, digits, suffix);
}

std::string save_button(std::string_view name) {
  return fmt::format(
      "<button class=\"save\" data-name=\"{}\" title=\"save this figure as an SVG file\">SVG"
      "</button>",
      escape(name));
}

std::vector<Point> smoothed(const std::vector<Point>& points, double span, bool rates) {
  const double keep = span > 1 ? 1 - 1 / span : 0;
  std::vector<Point> result;
  double sum = 0, weight = 0;
  for (const Point& point : points) {
    const double value = rates ? 1 / point.y : point.y;
    if (!drawable(value)) continue;
    sum = keep * sum + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    result.push_back({point.x, rates ? weight / sum : sum / weight});
  }
  return result;
}

std::string plot(const Plot& plot) {
  const std::vector<double> ys = ticks(plot.low, plot.high, 4);
  const std::vector<double> xs = ticks(plot.left, plot.right, 6);
  const auto step = [](const std::vector<double>& values) {
    return values.size() > 1 ? values[1] - values[0] : 1.0;
  };
  std::string grid, labels;
  for (const double y : ys) {
    const double at = 1 - share(y, plot.low, plot.high);
    grid += fmt::format("<line class=\"grid\" x1=\"0\" x2=\"1000\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>",
                        1000 * at);
    labels += fmt::format("<span class=\"y\" style=\"top:{}\">{}</span>", percent(at),
                          tick_label(y, step(ys)));
  }
  for (const double x : xs)
    labels += fmt::format("<span class=\"x\" style=\"left:{}\">{}</span>",
                          percent(share(x, plot.left, plot.right)), tick_label(x, step(xs)));
  std::string lines;
  for (const Series& series : plot.series) lines += path(series, plot);
  for (const Mark& mark : plot.marks) {
    const double at = share(mark.x, plot.left, plot.right);
    lines += fmt::format(
        "<line class=\"change\" x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"0\" y2=\"1000\"><title>{1}"
        "</title></line>",
        1000 * at, escape(mark.title));
    labels += fmt::format("<span class=\"m\" style=\"left:{}\">{}</span>", percent(at),
                          escape(mark.label));
  }
  return fmt::format(
      "<div class=\"plot{}\" data-x=\"{}\" style=\"height:{}px\">{}<svg viewBox=\"0 0 1000 1000\" "
      "preserveAspectRatio=\"none\" data-axes=\"{} {} {} {}\">{}{}</svg><span class=\"unit\">{}"
      "</span></div>\n",
      plot.marks.empty() ? "" : " marked", escape(plot.x_unit), plot.height, labels, plot.left,
      plot.right, plot.low, plot.high, grid, lines, escape(plot.x_unit));
}

}  // namespace concertina::html
