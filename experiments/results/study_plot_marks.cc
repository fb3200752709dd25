#include "experiments/results/study_plot_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "experiments/results/group_comparison.h"
#include "experiments/results/statistics.h"

namespace concertina {
namespace {

/// A mean and what surrounds it; NaN where there is none.
struct PlotPoint {
  double mean = std::nan(""), low = std::nan(""), high = std::nan("");
};

PlotPoint point_of(const Trials& trials, const std::string& metric, double factor,
                   const PlotOptions& options) {
  const SampleSummary summary = summarize(figures_of(trials, metric), options.confidence);
  PlotPoint point;
  if (summary.n == 0) return point;
  point.mean = factor * summary.mean;
  const auto& size = options.spread == PlotSpread::deviation ? summary.sd : summary.half_width;
  if (!size || options.spread == PlotSpread::none) return point;
  point.low = point.mean - factor * *size;
  point.high = point.mean + factor * *size;
  return point;
}

Trials with_value(const Trials& trials, const std::string& column, const Cell& value) {
  Trials same;
  for (const TrialRecord* trial : trials)
    if (cell_of(*trial, column) == value) same.push_back(trial);
  return same;
}

bool any_interval(const std::vector<double>& low) {
  return std::ranges::any_of(low, [](double value) { return std::isfinite(value); });
}

/// A single nameless series needs no legend.
std::string series_name(const PlotShape& shape, const TrialGroup& group) {
  return shape.group.empty() ? "" : group_label(shape.group, group.values);
}

}  // namespace

std::vector<Cell> cells_in(const Trials& trials, const std::string& column) {
  std::vector<Cell> cells;
  for (const TrialRecord* trial : trials)
    if (const Cell cell = cell_of(*trial, column); std::ranges::find(cells, cell) == cells.end())
      cells.push_back(cell);
  const auto number = [](const Cell& cell) { return std::holds_alternative<double>(cell); };
  if (std::ranges::all_of(cells, number)) std::ranges::sort(cells);
  return cells;
}

bool all_numbers(const Trials& trials, const std::string& column) {
  return std::ranges::all_of(trials, [&](const TrialRecord* trial) {
    return std::holds_alternative<double>(cell_of(*trial, column));
  });
}

std::vector<std::string> plot_axes(const StudyResults& results, const Trials& trials) {
  std::vector<std::string> axes = default_groups(results, "run.seed");
  std::erase_if(axes, [&](const std::string& a) { return cells_in(trials, a).size() < 2; });
  return axes;
}

Lines plot_lines(const Trials& trials, const PlotShape& shape, const PlotOptions& options) {
  const double factor = name_of_figure(shape.y.name).factor,
               x_factor = name_of_figure(shape.x).factor;
  if (!all_numbers(trials, shape.x))
    throw_input(fmt::format("'{}' has values that are no numbers", shape.x), "--x",
                "--kind bars; or an axis of numbers");
  Lines lines;
  for (const TrialGroup& group : groups_of(trials, shape.group)) {
    LineSeries line{.name = series_name(shape, group)};
    for (const Cell& x : cells_in(group.done, shape.x)) {
      const PlotPoint point =
          point_of(with_value(group.done, shape.x, x), shape.y.name, factor, options);
      line.x.push_back(x_factor * std::get<double>(x));
      line.y.push_back(point.mean);
      line.low.push_back(point.low);
      line.high.push_back(point.high);
    }
    if (!any_interval(line.low)) line.low = line.high = {};
    lines.series.push_back(std::move(line));
  }
  return lines;
}

Lines plot_curves(const Trials& trials, const PlotShape& shape, const PlotOptions& options) {
  const double factor = name_of_figure(shape.y.name).factor;
  Lines lines;
  for (const TrialGroup& group : groups_of(trials, shape.group)) {
    std::vector<StepCurve> curves;
    for (const TrialRecord* trial : group.done)
      curves.push_back(curve_of(read_course(*trial), shape.y.name));
    const MeanCurve mean = mean_of(curves, options.spread == PlotSpread::deviation
                                               ? std::nullopt
                                               : std::optional(options.confidence));
    LineSeries line{.name = series_name(shape, group), .x = mean.step, .markers = false};
    line.band = true;
    const bool spread = options.spread != PlotSpread::none && curves.size() > 1;
    for (std::size_t i = 0; i < mean.step.size(); ++i) {
      line.y.push_back(factor * mean.mean[i]);
      if (!spread) continue;
      line.low.push_back(factor * mean.low[i]);
      line.high.push_back(factor * mean.high[i]);
    }
    lines.series.push_back(std::move(line));
  }
  return lines;
}

Bars plot_bars(const Trials& trials, const PlotShape& shape, const PlotOptions& options) {
  const double factor = name_of_figure(shape.y.name).factor;
  Bars bars;
  const std::vector<Cell> xs = cells_in(trials, shape.x);
  for (const Cell& x : xs) bars.groups.push_back(cell_text(x));
  for (const TrialGroup& group : groups_of(trials, shape.group)) {
    BarSeries series{.name = series_name(shape, group)};
    for (const Cell& x : xs) {
      const PlotPoint point =
          point_of(with_value(group.done, shape.x, x), shape.y.name, factor, options);
      series.values.push_back(point.mean);
      series.low.push_back(point.low);
      series.high.push_back(point.high);
    }
    if (!any_interval(series.low)) series.low = series.high = {};
    bars.series.push_back(std::move(series));
  }
  return bars;
}

HeatMap plot_heat_map(const Trials& trials, const PlotShape& shape, const PlotOptions& options) {
  const FigureName y = name_of_figure(shape.y.name);
  if (shape.group.size() != 1)
    throw_input("a heat map has one axis for its rows", "--group",
                fmt::format("--group COLUMN, --x COLUMN; now --x is {}, --group is {}", shape.x,
                            shape.group.empty() ? "nothing"
                                                : fmt::format("{}", fmt::join(shape.group, ","))));
  HeatMap map;
  map.label = y.label;
  map.unit = y.unit;
  map.dark_is_low = shape.y.better == BetterEnd::lower;
  const std::vector<Cell> xs = cells_in(trials, shape.x);
  for (const Cell& x : xs) map.columns.push_back(cell_text(x));
  for (const Cell& row : cells_in(trials, shape.group[0])) {
    map.rows.push_back(cell_text(row));
    std::vector<double>& values = map.values.emplace_back();
    const Trials of_row = with_value(trials, shape.group[0], row);
    for (const Cell& x : xs)
      values.push_back(
          point_of(with_value(of_row, shape.x, x), shape.y.name, y.factor, options).mean);
  }
  return map;
}

Scatter plot_scatter(const StudyResults& results, const Trials& trials, const PlotShape& shape,
                     const PlotOptions& options) {
  const double x_factor = name_of_figure(shape.x).factor,
               y_factor = name_of_figure(shape.y.name).factor;
  const MetricColumn x = metric_column(results, shape.x);
  Scatter scatter;
  scatter.x = x.better;
  scatter.y = shape.y.better;
  const std::vector<std::string> axes = plot_axes(results, trials);
  for (const TrialGroup& group : groups_of(trials, options.group)) {
    ScatterSeries series{.name =
                             options.group.empty() ? "" : group_label(options.group, group.values)};
    for (const TrialGroup& point : groups_of(group.done, axes))
      series.points.push_back({point_of(point.done, x.name, x_factor, options).mean,
                               point_of(point.done, shape.y.name, y_factor, options).mean,
                               group_label(axes, point.values)});
    scatter.series.push_back(std::move(series));
  }
  return scatter;
}

}  // namespace concertina
