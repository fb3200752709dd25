// Charts for a paper, as values: fill in a Chart, ask for svg(chart), write it with write_figure()
// (io/figure/write_figure.h).
//
//   Chart chart{.title = "Strong scaling", .x = {"ranks", "", Scale::log2},
//               .y = {"step time", "ms"}};
//   chart.marks = Lines{{{.name = "1f1b", .x = {1, 2, 4}, .y = {90, 48, 27}}}};
//   write_figure("scaling.pdf", svg(chart));
//
// Invariants: the same value gives the same bytes. No value makes it fail: what is not finite (or
// not above 0 on a logarithmic axis) is left out, vectors of unequal length are read up to the
// shortest, and a chart without anything to show says so. An axis holds all of its data. Series are
// told apart by colour (Okabe and Ito, 2008), and by dashes, markers or hatches too, so that a grey
// print can be read. Words do not overlap, and no legend lies on data.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/figure/drawing.h"

namespace concertina {

/// Widths of a figure in inches: one column of a page of two, and both.
inline constexpr double kColumnInches = 3.25, kPageInches = 6.75;

enum class Scale {
  linear,
  log,   // ticks at powers of ten, or 1-2-5 where there are few
  log2,  // ticks at powers of two: numbers of ranks
};

struct ChartAxis {
  std::string label{}, unit{};  // shown as "label (unit)"
  Scale scale = Scale::linear;
  bool from_zero = false;               // linear: 0 is on it, whatever the data
  std::optional<double> low{}, high{};  // it reaches these at least
};

/// A curve. `low` and `high` (of y, as long as y, or empty) are its confidence interval.
struct LineSeries {
  std::string name{};
  std::vector<double> x{}, y{};  // in the order in which they are joined; a NaN is a gap
  std::vector<double> low{}, high{};
  bool band = false;       // the interval is shaded; else error bars
  bool markers = true;     // at the points (of many points, at some)
  bool reference = false;  // thin and grey: what would be ideal
  bool faint = false;      // thin and pale: single values, of which another line is the mean
  std::optional<std::size_t> look{};  // colour and dashes are those of this series, from 0 on
};
/// An upright line through the chart where something happened: a word on top, and what a reader of
/// a web page sees who points at it.
struct LineMark {
  double x = 0;
  std::string label{}, title{};
};
struct Lines {
  std::vector<LineSeries> series;
  std::vector<LineMark> marks{};
};

/// One bar per group, side by side with those of the other series.
struct BarSeries {
  std::string name{};
  std::vector<double> values{};       // by group; NaN: no bar
  std::vector<double> low{}, high{};  // error bars, by group, or empty
  std::vector<std::vector<double>> points{};  // what a bar is the mean of, by group, or empty
};
struct Bars {
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

/// Bars side by side within a group, each of parts that stand on each other in one order; their sum
/// is written on top. Parts that are not finite or not above 0 are left out.
struct StackedBar {
  std::vector<double> values{};  // by part
  bool pale = false;
  std::optional<double> mark{};  // a line across it: what was expected
  std::string text{};            // in place of the sum
};
struct StackGroup {
  std::string name{};
  std::vector<StackedBar> bars{};
};
struct Stacks {
  std::vector<std::string> parts;  // their names, from the bottom up
  std::vector<StackGroup> groups;
  std::vector<Colour> colours{};  // of the parts; else those of series
  std::string mark{};             // what the marks are
  bool level = false;             // bars go from left to right: x has the numbers
};

/// A number per cell, dark where it is large (or small: `dark_is_low`).
struct HeatMap {
  std::vector<std::string> columns, rows;   // their names; the first row is on top
  std::vector<std::vector<double>> values;  // by row, then column; NaN: no value
  std::string label, unit;                  // what the numbers are
  bool dark_is_low = false;
  int digits = 3;  // significant, of the numbers in the cells
};

struct NamedPoint {
  double x = 0, y = 0;
  std::string name{};  // near the point, joined to it by a thin line if it is not beside it
  /// The ends of error bars; none: no bar that way.
  std::optional<double> x_low{}, x_high{}, y_low{}, y_high{};
};
struct ScatterSeries {
  std::string name{};
  std::vector<NamedPoint> points{};
};
/// Which end of an axis is better.
enum class BetterEnd { neither, lower, higher };
/// Where both axes have a better end, the points that no other one beats are joined by steps (their
/// Pareto front); the others are pale. Names lie on no point, line or other name; one without room
/// is left out.
struct Scatter {
  std::vector<ScatterSeries> series;
  BetterEnd x = BetterEnd::neither, y = BetterEnd::neither;
  std::vector<double> levels{};  // of y, each a thin line across the chart
};

enum class LegendAt {
  automatic,  // top if more than one series has a name, else none
  none,
  top,     // between title and axes
  right,   // beside the axes
  direct,  // Lines: each name beside the end of its line, in its colour
};

struct Chart {
  std::string title{};
  ChartAxis x{}, y{};  // of Bars and Stacks: one has numbers; of a HeatMap: the labels alone
  std::variant<Lines, Bars, Stacks, HeatMap, Scatter> marks{};
  double width_in = kColumnInches;
  double height_in = 0;  // 0: what suits the width, or the rows of a heat map
  LegendAt legend = LegendAt::automatic;
  std::string note{};  // under the title
};

Drawing draw(const Chart& chart);
std::string svg(const Chart& chart);

/// Indices of the points that no other one beats (as good in both and better in one), in order of
/// x. The first of equal points stays. There are none where `x` or `y` has no better end.
std::vector<std::size_t> pareto_front(const std::vector<Spot>& points, BetterEnd x, BetterEnd y);

}  // namespace concertina
