// The common parts of all charts: the sheet, title, legend, axes and their ticks; and what each
// kind shows inside its axes. Invariants: the area of the marks and all words around it are
// disjoint; no series of no value has a line in the legend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/figure/axis_scale.h"
#include "io/figure/chart.h"

namespace concertina {

inline constexpr double kTitleSize = 8.5, kLabelSize = 8, kTickSize = 7;  // points

/// How a series looks.
struct SeriesLook {
  Colour colour{};
  std::vector<double> dash{};
  Hatch hatch = Hatch::none;
  std::size_t marker = 0;  // of series_marker()
  double width = 1.3;      // of lines
};
/// That of the n-th series.
SeriesLook look_of_series(std::size_t n);

/// A line of a legend: a sample of the marks of a series, and its name.
struct LegendEntry {
  enum class Sample { line, box, point };
  std::string name;
  SeriesLook look;
  Sample sample = Sample::line;
  bool marker = false;  // of a line
};

/// A name that a chart has at its right edge instead of a legend.
struct EndLabel {
  double value = 0;  // of y
  std::string name;
  Colour colour{};
};

class ChartFrame {
 public:
  /// Draws title and legend; the rest of the sheet is for the axes.
  ChartFrame(const Chart& chart, const std::vector<LegendEntry>& legend);

  double left() const { return left_; }
  double right() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }
  /// Where a value of an axis lies.
  double x_of(const AxisScale& x, double value) const {
    return left_ + x.share(value) * (right_ - left_);
  }
  double y_of(const AxisScale& y, double value) const {
    return bottom_ - y.share(value) * (bottom_ - top_);
  }

  /// Leaves `points` of the right side, or of the top, to somebody else, who draws there.
  void keep_right(double points) { right_ -= points; }
  void keep_top(double points) { top_ += points; }
  /// Makes the sheet as high as so many points between top and bottom need, unless the chart says
  /// how high it is. Before the axes.
  void want_inside(double points);

  /// Axes with numbers on both sides, or names below or beside in place of numbers.
  void number_axes(const AxisScale& x, const AxisScale& y, const std::vector<EndLabel>& ends);
  void name_axis_below(const std::vector<std::string>& names, const AxisScale& y);
  void name_axis_beside(const std::vector<std::string>& names, const AxisScale& x);
  void name_both_axes(const std::vector<std::string>& below,
                      const std::vector<std::string>& beside);

  /// All shapes so far; they must not be overlapped by what is added.
  Drawing& sheet() { return sheet_; }

 private:
  void title();
  void legend(const std::vector<LegendEntry>& entries);
  double legend_entry(const LegendEntry& entry, double x, double y, double width);
  void y_label();
  void x_label();
  int most_levels() const;  // ticks of y
  void y_ticks(const std::vector<AxisTick>& ticks, const AxisScale& y);
  std::vector<AxisTick> fitting_ticks(const AxisScale& x) const;
  void x_ticks(const std::vector<AxisTick>& ticks, const AxisScale& x);
  void room_for_names(const std::vector<std::string>& names);
  void names_below(const std::vector<std::string>& names);
  double room_beside(const std::vector<std::string>& names) const;
  void names_beside(const std::vector<std::string>& names, double room);
  void end_labels(const std::vector<EndLabel>& ends, const AxisScale& y);
  void border();

  const Chart& chart_;
  Drawing sheet_;
  double left_ = 4, right_ = 0, top_ = 3, bottom_ = 0;
  double legend_end_ = 0;    // of one beside the axes
  bool turned_ = false;      // the names below stand on end, as it were
  double names_height_ = 0;  // of the names below
};

/// A rectangle of a series, with its hatch.
void add_box(RectShape box, const SeriesLook& look, double gap, Drawing& sheet);

/// Nothing if there is nothing to show.
std::optional<Drawing> draw_marks(const Chart& chart, const Lines& lines);
std::optional<Drawing> draw_marks(const Chart& chart, const Bars& bars);
std::optional<Drawing> draw_marks(const Chart& chart, const Stacks& stacks);
std::optional<Drawing> draw_marks(const Chart& chart, const HeatMap& map);
std::optional<Drawing> draw_marks(const Chart& chart, const Scatter& scatter);

}  // namespace concertina
