// How figures of a study's results read in a paper: title, unit, the better way, and as many digits
// as their uncertainty bears.
// Invariants: pure; tables, plots and pages take names from here alone; all figures of a column
// have the same number of decimals.
#pragma once

#include <string>
#include <vector>

#include "io/figure/chart.h"

namespace concertina {

struct FigureName {
  std::string title;  // of a table's column, with a unit that is needed there: "Step time (ms)"
  std::string label;  // beside an axis of a chart, whose unit stands apart: "step time"
  std::string unit;
  double factor = 1;  // from the recorded figure to the unit: bytes are shown as MiB
  BetterEnd better = BetterEnd::neither;

  /// The title without its unit, for sentences: "Step time".
  std::string short_title() const { return title.substr(0, title.find(" (")); }
};

/// A column without an entry is its own title and label, and the ending of its name tells its unit
/// and the better way: times, bytes, losses and bubbles are better the lower they
/// are, rates and utilizations the higher they are; of others nothing is known.
FigureName name_of_figure(const std::string& column);

/// The target that is the baseline's last value; a number with its sign may stand after it.
inline constexpr const char* kBaselineTarget = "baseline";
/// The column of the training seconds until a metric reaches a target.
std::string time_to(const std::string& metric, const std::string& target);
bool is_time_to(const std::string& column);
/// The metric whose target a time_to() is of; of any other column itself.
std::string metric_of_time_to(const std::string& column);

/// How the figures of a column are written: so many decimals, or as powers of ten.
struct FigureDigits {
  int decimals = 0;
  bool powers = false;
};

/// Two digits of the median uncertainty (of those above zero), and up to two more where the
/// smallest would otherwise be zero; without any, five digits of the largest value, none after the
/// point if all values are whole. Values that are not finite do not count.
FigureDigits digits_for(const std::vector<double>& values,
                        const std::vector<double>& uncertainties);

/// "26,431.5"; a value that these decimals would round to zero as "1e-17". NaN and infinity by
/// name.
std::string figure_text(double value, const FigureDigits& digits);

}  // namespace concertina
