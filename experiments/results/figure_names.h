// How columns of a study's results read in a paper: title, unit and the better way.
// Invariant: pure; tables, plots and pages take names from here alone.
#pragma once

#include <string>

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

}  // namespace concertina
