// A chart of a study: a figure over an axis, a line or bar per group, mean and spread over the
// rest. Invariants: pure, but for the logs of runs that curves over steps are read from; the same
// results give the same chart, whatever order trials finished in; trials that are not done, and
// values that are not finite, are not in it, and `notes` says so.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/results/study_course.h"
#include "io/figure/chart.h"

namespace concertina {

enum class PlotKind { automatic, lines, bars, heatmap, pareto, front };
/// Throws Error{bad_input} for a word that is none of: lines, bars, heatmap, pareto, front.
PlotKind plot_kind(const std::string& word);
const char* name_of(PlotKind kind);

/// The bar or band around a mean of at least two trials: nothing, their standard deviation, or the
/// interval of the mean.
enum class PlotSpread { none, deviation, interval };
/// Throws Error{bad_input} for a word that is none of: none, sd, ci.
PlotSpread plot_spread(const std::string& word);

struct PlotOptions {
  PlotKind kind = PlotKind::automatic;
  std::string x;                   // a column, or "step"; empty: an axis, see plot_shape()
  std::string y;                   // a metric; empty: the first of default_metrics()
  std::vector<std::string> group;  // columns; none: all other axes but run.seed
  std::vector<std::string> where;  // as of chosen_trials()
  PlotSpread spread = PlotSpread::deviation;
  double confidence = 0.95;                 // of the interval
  bool mixed = false;                       // provenance_notes()
  std::vector<std::string> baseline{};      // of a front
  std::optional<EquivalenceClaim> claim{};  // of a front; none: that of the study's file
  std::string title;
  double width_in = kColumnInches, height_in = 0;
  std::optional<Scale> x_scale, y_scale;  // none: as the values are spread
};

struct StudyPlot {
  PlotKind kind = PlotKind::lines;
  Chart chart{};
  std::vector<std::string> notes{};
};

/// The chart of a study. Without a kind it has curves where x is "step", points where it is a
/// figure, lines where its values are numbers, and else bars, or a heat map where there would be
/// more bars than can be told apart. Without x it goes over the first axis whose values are
/// numbers, else the first one. A front is make_table()'s, of x and y. Throws Error{bad_input} for
/// unknown columns, and where there is nothing to draw.
StudyPlot plot_study(const StudyResults& results, const PlotOptions& options);

/// The numbers of the chart.
nlohmann::ordered_json to_json(const StudyPlot& plot);

}  // namespace concertina
