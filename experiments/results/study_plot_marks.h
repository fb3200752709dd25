// What a chart of a study shows inside its axes, by kind.
// Invariant: `trials` are done; each mark is of the trials with the same values in x and group.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/figure_names.h"
#include "experiments/results/study_plot.h"

namespace concertina {

/// What is drawn over what.
struct PlotShape {
  PlotKind kind = PlotKind::lines;
  std::string x;
  MetricColumn y;
  std::vector<std::string> group;
};

/// The cells of a column, each once: numbers by size if all are, else in the order of trials.
std::vector<Cell> cells_in(const Trials& trials, const std::string& column);
bool all_numbers(const Trials& trials, const std::string& column);
/// The axes that differ between these trials, without seeds.
std::vector<std::string> plot_axes(const StudyResults& results, const Trials& trials);

/// Each throws Error{bad_input} if x or group are not what the kind needs.
Lines plot_lines(const Trials& trials, const PlotShape& shape, const PlotOptions& options);
/// Mean curves over steps, from the logs of the runs.
Lines plot_curves(const Trials& trials, const PlotShape& shape, const PlotOptions& options);
Bars plot_bars(const Trials& trials, const PlotShape& shape, const PlotOptions& options);
HeatMap plot_heat_map(const Trials& trials, const PlotShape& shape, const PlotOptions& options);
/// A point per group of all axes; a series per value of --group.
Scatter plot_scatter(const StudyResults& results, const Trials& trials, const PlotShape& shape,
                     const PlotOptions& options);

}  // namespace concertina
