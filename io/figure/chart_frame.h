// What all charts have in common: the sheet, title, legend, axes and their ticks.
// Invariant: the area of the marks and all words around it are disjoint.
#pragma once

#include <string>
#include <vector>

#include "io/figure/axis_scale.h"
#include "io/figure/chart.h"

namespace concertina {

inline constexpr double kTitleSize = 8.5, kLabelSize = 8, kTickSize = 7;  // points

/// A line of a legend: a sample of the marks of series `style`, and its name.
struct LegendEntry {
  enum class Sample { line, box, point };
  std::string name;
  std::size_t style = 0;
  Sample sample = Sample::line;
  bool marker = true, reference = false;  // of a line
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

  double width() const { return sheet_.width; }
  double height() const { return sheet_.height; }
  double left() const { return left_; }
  double right() const { return right_; }
  double top() const { return top_; }
  double bottom() const { return bottom_; }

  /// Leaves `points` of the right side to somebody else, who draws there.
  void keep_right(double points) { right_ -= points; }
  /// Makes the sheet as high as so many points between top and bottom need, unless the chart says
  /// how high it is. Before the axes.
  void want_inside(double points);

  /// Axes with numbers on both sides, or names below or beside in place of numbers.
  void number_axes(const AxisScale& x, const AxisScale& y, const std::vector<EndLabel>& ends);
  void name_axis_below(const std::vector<std::string>& names, const AxisScale& y);
  void name_both_axes(const std::vector<std::string>& below,
                      const std::vector<std::string>& beside);

  void add(Shape shape) { sheet_.shapes.push_back(std::move(shape)); }
  /// The shapes so far, and what may overlap them from now on.
  Drawing drawing() const { return sheet_; }

 private:
  void title();
  void legend(const std::vector<LegendEntry>& entries);
  void legend_entry(const LegendEntry& entry, double x, double y, double width);
  void y_label();
  void x_label();
  int most_levels() const;  // ticks of y
  void y_ticks(const std::vector<AxisTick>& ticks, const AxisScale& y);
  void x_ticks(const std::vector<AxisTick>& ticks, const AxisScale& x);
  void room_for_names(const std::vector<std::string>& names);
  void names_below(const std::vector<std::string>& names);
  void end_labels(const std::vector<EndLabel>& ends, const AxisScale& y);
  void border();

  const Chart& chart_;
  Drawing sheet_;
  double left_ = 4, right_ = 0, top_ = 3, bottom_ = 0;
  bool turned_ = false;      // the names below stand on end, as it were
  double names_height_ = 0;  // of the names below
};

}  // namespace concertina
