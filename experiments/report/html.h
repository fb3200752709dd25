// Small pieces of HTML and SVG, as text.
// Invariants: what these give is well-formed XML, whatever text goes in; positions along an axis
// are per cent of it, so that a picture grows without its letters growing with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace concertina::html {

/// `text` with the characters that mean something in XML replaced; control characters become '?'.
std::string escape(std::string_view text);

/// `share` of the axis, "12.34%".
std::string percent(double share);

/// `share`, "12.3%".
std::string share_text(double share);

/// A line of a legend: a square in the colour of this CSS class, then `text`.
std::string key(std::string_view style, std::string_view text);

/// Steps of 1, 2 or 5 x 10^n from 0 (or the first above `low`) to at most `high`, about `count`.
std::vector<double> ticks(double low, double high, int count);
/// A number with as many digits as the distance of two ticks needs.
std::string tick_label(double value, double step);

/// The button that saves the figure around it as an SVG file of this name.
std::string save_button(std::string_view name);

/// Whether an axis can have `value` on it: finite, and so that differences are.
bool drawable(double value);

struct Point {
  double x = 0, y = 0;
};
struct Series {
  std::string style;  // CSS class of the line
  std::vector<Point> points;
  bool steps = false;  // holds its value until the next point
  bool area = false;   // filled down to the bottom
  bool dots = false;   // each point by itself as well
  std::string name{};  // what the reader of a value sees; empty: its values are not read off
};
/// Exponential mean over about `span` points; of the reciprocals where `rates` says so, since a
/// rate over several steps is all they did over all that they took.
std::vector<Point> smoothed(const std::vector<Point>& points, double span, bool rates = false);

/// A vertical line through a chart, with a word above it and one that a reader sees who points at
/// it.
struct Mark {
  double x = 0;
  std::string label, title;
};
/// A chart with its axes; `low` and `high` of y, x from the points. Long series are thinned: of the
/// points of one column, the lowest and the highest stay. Points that are not drawable() are left
/// out.
struct Plot {
  std::string x_unit;
  double low = 0, high = 1;  // of y
  double left = 0, right = 1;
  std::vector<Series> series;
  int height = 150;  // pixels
  std::vector<Mark> marks{};
};
std::string plot(const Plot& plot);

}  // namespace concertina::html
