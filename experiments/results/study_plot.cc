#include "experiments/results/study_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "experiments/machine/machine.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/measures.h"
#include "experiments/results/statistics.h"
#include "experiments/results/study_claims.h"
#include "experiments/results/study_notes.h"

namespace concertina {
namespace {

constexpr std::array<std::string_view, 6> kPlotKinds = {"automatic", "lines",  "bars",
                                                        "heatmap",   "pareto", "front"};
constexpr std::array<std::string_view, 3> kPlotSpreads = {"none", "sd", "ci"};
constexpr std::size_t kMostBars = 36;  // of one chart, before it is a heat map
constexpr double kWideRange = 8;       // of values on a logarithmic axis, at least

/// The columns that a chart draws, and how.
struct PlotShape {
  PlotKind kind = PlotKind::lines;
  std::string x;
  MetricColumn y;
  std::vector<std::string> group;
};

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

/// The points of a group at these values of x, and the ends of what surrounds them: none where no
/// point has any.
struct PlotPoints {
  std::vector<double> means, low, high;
};
PlotPoints points_at(const std::vector<Cell>& xs, const Trials& trials, const PlotShape& shape,
                     const PlotOptions& options) {
  const double factor = name_of_figure(shape.y.name).factor;
  PlotPoints points;
  for (const Cell& x : xs) {
    const PlotPoint one = point_of(with_value(trials, shape.x, x), shape.y.name, factor, options);
    points.means.push_back(one.mean);
    points.low.push_back(one.low);
    points.high.push_back(one.high);
  }
  if (std::ranges::none_of(points.low, [](double value) { return std::isfinite(value); }))
    points.low = points.high = {};
  return points;
}

/// A single nameless series needs no legend.
std::string series_name(const std::vector<std::string>& columns, const TrialGroup& group) {
  return columns.empty() ? "" : group_label(columns, group.values);
}

/// The cells of a column, each once: numbers by size if all are, else in the order of trials.
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

/// The axes that differ between these trials, without seeds.
std::vector<std::string> plot_axes(const StudyResults& results, const Trials& trials) {
  std::vector<std::string> axes = default_groups(results, "run.seed");
  std::erase_if(axes, [&](const std::string& a) { return cells_in(trials, a).size() < 2; });
  return axes;
}

Lines plot_lines(const Trials& trials, const PlotShape& shape, const PlotOptions& options) {
  const double x_factor = name_of_figure(shape.x).factor;
  if (!all_numbers(trials, shape.x))
    throw_input(fmt::format("'{}' has values that are no numbers", shape.x), "--x",
                "--kind bars; or an axis of numbers");
  Lines lines;
  for (const TrialGroup& group : groups_of(trials, shape.group)) {
    const std::vector<Cell> xs = cells_in(group.done, shape.x);
    const PlotPoints points = points_at(xs, group.done, shape, options);
    LineSeries& line = lines.series.emplace_back(LineSeries{.name = series_name(shape.group, group),
                                                            .y = points.means,
                                                            .low = points.low,
                                                            .high = points.high});
    for (const Cell& x : xs) line.x.push_back(x_factor * std::get<double>(x));
  }
  return lines;
}

/// Mean curves over steps, from the logs of the runs.
Lines plot_curves(const Trials& trials, const PlotShape& shape, const PlotOptions& options) {
  const double factor = name_of_figure(shape.y.name).factor;
  Lines lines;
  for (const TrialGroup& group : groups_of(trials, shape.group)) {
    std::vector<StepCurve> curves;
    for (const TrialRecord* trial : group.done)
      curves.push_back(curve_of(read_log(trial->directory), shape.y.name));
    const MeanCurve mean = mean_of(curves, options.spread == PlotSpread::deviation
                                               ? std::nullopt
                                               : std::optional(options.confidence));
    LineSeries line{.name = series_name(shape.group, group), .x = mean.step, .markers = false};
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
  Bars bars;
  const double factor = name_of_figure(shape.y.name).factor;
  const std::vector<Cell> xs = cells_in(trials, shape.x);
  for (const Cell& x : xs) bars.groups.push_back(cell_text(x));
  for (const TrialGroup& group : groups_of(trials, shape.group)) {
    const PlotPoints points = points_at(xs, group.done, shape, options);
    BarSeries& series = bars.series.emplace_back(
        BarSeries{series_name(shape.group, group), points.means, points.low, points.high});
    for (const Cell& x : xs) {
      std::vector<double> seeds = figures_of(with_value(group.done, shape.x, x), shape.y.name);
      for (double& figure : seeds) figure *= factor;
      series.points.push_back(seeds.size() > 1 ? seeds : std::vector<double>{});
    }
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
    map.values.push_back(
        points_at(xs, with_value(trials, shape.group[0], row), shape, options).means);
  }
  return map;
}

/// A point per group of all axes; a series per value of --group.
Scatter plot_scatter(const StudyResults& results, const Trials& trials, const PlotShape& shape,
                     const PlotOptions& options) {
  const double x_factor = name_of_figure(shape.x).factor,
               y_factor = name_of_figure(shape.y.name).factor;
  const MetricColumn x = metric_column(results, shape.x);
  Scatter scatter;
  if (unlike_notes(trials, {x, shape.y}).empty()) scatter.x = x.better, scatter.y = shape.y.better;
  const std::vector<std::string> axes = plot_axes(results, trials);
  for (const TrialGroup& group : groups_of(trials, options.group)) {
    ScatterSeries series{.name = series_name(options.group, group)};
    for (const TrialGroup& point : groups_of(group.done, axes))
      series.points.push_back({point_of(point.done, x.name, x_factor, options).mean,
                               point_of(point.done, shape.y.name, y_factor, options).mean,
                               group_label(axes, point.values)});
    scatter.series.push_back(std::move(series));
  }
  return scatter;
}

Trials done_of(const Trials& trials) {
  Trials done;
  for (const TrialRecord* trial : trials)
    if (trial->state == TrialState::done) done.push_back(trial);
  return done;
}

bool is_setting(const Trials& trials, const std::string& column) {
  return std::ranges::any_of(trials, [&](const TrialRecord* trial) {
    return std::ranges::any_of(trial->settings,
                               [&](const auto& setting) { return setting.first == column; });
  });
}

std::string default_x(const Trials& trials, const std::vector<std::string>& axes,
                      const PlotOptions& options) {
  if (options.kind == PlotKind::pareto) return "peak_bytes";
  if (axes.empty())
    throw_input("nothing but the seed differs between these trials", "--x",
                "--x step, for a curve over the steps of the runs");
  const auto first = std::ranges::find_if(
      axes, [&](const std::string& axis) { return all_numbers(trials, axis); });
  const bool bars = options.kind == PlotKind::bars || options.kind == PlotKind::heatmap;
  return bars || first == axes.end() ? axes.front() : *first;
}

PlotKind default_kind(const Trials& trials, const PlotShape& shape) {
  if (shape.x == "step") return PlotKind::lines;
  if (all_numbers(trials, shape.x))
    return is_setting(trials, shape.x) ? PlotKind::lines : PlotKind::pareto;
  const std::size_t bars = cells_in(trials, shape.x).size() * groups_of(trials, shape.group).size();
  return bars > kMostBars && shape.group.size() == 1 ? PlotKind::heatmap : PlotKind::bars;
}

PlotShape plot_shape(const StudyResults& results, const Trials& trials,
                     const PlotOptions& options) {
  PlotShape shape;
  if (options.y.empty()) {
    const std::vector<MetricColumn> metrics = default_metrics(results);
    if (metrics.empty()) throw_input("the study has no figures", "--y", "--y COLUMN");
    shape.y = metrics.front();
    if (options.kind == PlotKind::pareto && has_column(results, "tokens_per_s"))
      shape.y = metric_column(results, "tokens_per_s");
  } else if (options.x == "step") {
    shape.y = {options.y, name_of_figure(options.y).better};
  } else {
    shape.y = metric_column(results, options.y);
  }
  const std::vector<std::string> axes = plot_axes(results, trials);
  shape.x = options.x.empty() ? default_x(trials, axes, options) : options.x;
  if (shape.x != "step") require_column(results, shape.x, "--x");
  for (const std::string& column : options.group) require_column(results, column, "--group");
  shape.group = options.group;
  if (shape.group.empty())
    std::ranges::copy_if(axes, std::back_inserter(shape.group),
                         [&](const std::string& axis) { return axis != shape.x; });
  // Figures of trials that were stopped are of fewer steps: another line.
  if (results.with_stopped && shape.x != "step" && values_in(trials, "steps").size() > 1)
    shape.group.emplace_back("steps");
  shape.kind = options.kind == PlotKind::automatic ? default_kind(trials, shape) : options.kind;
  return shape;
}

StudyPlot plot_front(const StudyResults& results, const PlotOptions& options) {
  const EquivalenceClaim* claim = options.claim   ? &*options.claim
                                  : results.claim ? &*results.claim
                                                  : nullptr;
  TableOptions table{.by = options.group,
                     .baseline = options.baseline,
                     .confidence = options.confidence,
                     .where = options.where,
                     .mixed = options.mixed,
                     .claim = options.claim};
  table.front = {options.x.empty() ? "train_s" : options.x, !options.y.empty() ? options.y
                                                            : claim            ? claim->metric
                                                                               : "validation_loss"};
  table.metrics = table.front;
  const StudyTable made = make_table(results, table);
  StudyPlot plot{.kind = PlotKind::front, .chart = front_chart(made), .notes = claim_lines(made)};
  std::ranges::copy(made.notes, std::back_inserter(plot.notes));
  return plot;
}

/// How far values are from an even distribution between the first and the last.
double unevenness(const std::vector<double>& values) {
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    most =
        std::max(most, std::abs((values[i] - values.front()) / (values.back() - values.front()) -
                                static_cast<double>(i) / static_cast<double>(values.size() - 1)));
  return most;
}

/// The scale of an axis for ascending values: powers of two have their own; others are drawn by
/// their logarithm if that spreads them more evenly.
Scale scale_for(const std::vector<double>& values) {
  if (values.size() < 2 || !(values.front() > 0)) return Scale::linear;
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log2(value));
  const auto whole = [](double value) { return value >= 0 && value == std::round(value); };
  if (std::ranges::all_of(logarithms, whole)) return Scale::log2;
  return values.back() >= kWideRange * values.front() && unevenness(logarithms) < unevenness(values)
             ? Scale::log
             : Scale::linear;
}

std::vector<std::string> plot_notes(const StudyResults& results, const Trials& chosen,
                                    const PlotShape& shape, const PlotOptions& options) {
  const Trials done = done_of(chosen);
  std::vector<std::string> notes = provenance_notes(done, results, options.mixed);
  notes.insert(notes.begin(), results.notes.begin(), results.notes.end());
  std::ranges::copy(unlike_notes(done, {{shape.x}, shape.y}), std::back_inserter(notes));
  const bool stopped = std::ranges::any_of(
      chosen, [](const TrialRecord* trial) { return trial->state == TrialState::stopped; });
  if (done.size() < chosen.size())
    notes.push_back(fmt::format("{} of {} trials are done; the others are not drawn{}", done.size(),
                                chosen.size(),
                                stopped ? "; --stopped draws those that the search stopped" : ""));
  std::vector<int> lost;
  if (shape.x != "step")
    for (const TrialRecord* trial : done)
      if (!std::isfinite(number_of(*trial, shape.y.name).value_or(NAN)))
        lost.push_back(trial->number);
  if (!lost.empty())
    notes.push_back(fmt::format("{} is not finite in trial{} {}: not drawn", shape.y.name,
                                lost.size() == 1 ? "" : "s", to_ranges(lost)));
  if (shape.kind == PlotKind::bars) notes.push_back("circles: single trials");
  if (options.spread != PlotSpread::none && shape.kind != PlotKind::heatmap &&
      shape.kind != PlotKind::pareto)
    notes.push_back(options.spread == PlotSpread::deviation
                        ? std::string("mean and standard deviation over the trials of a point")
                        : fmt::format("mean and its {:.4g}% interval over the trials of a point",
                                      100 * options.confidence));
  return notes;
}

/// What the options say of the look.
void dress(Chart& chart, const PlotOptions& options) {
  chart.title = options.title;
  chart.width_in = options.width_in;
  chart.height_in = options.height_in;
  if (options.x_scale) chart.x.scale = *options.x_scale;
  if (options.y_scale) chart.y.scale = *options.y_scale;
}

}  // namespace

PlotKind plot_kind(const std::string& word) {
  return static_cast<PlotKind>(1 + index_of(word, std::span(kPlotKinds).subspan(1),
                                            fmt::format("'{}' is no kind of chart", word),
                                            "--kind"));
}

const char* name_of(PlotKind kind) {
  return kPlotKinds.at(static_cast<std::size_t>(kind)).data();
}

PlotSpread plot_spread(const std::string& word) {
  return static_cast<PlotSpread>(
      index_of(word, kPlotSpreads, fmt::format("'{}' is no spread", word), "--spread"));
}

StudyPlot plot_study(const StudyResults& results, const PlotOptions& options) {
  const Trials chosen = chosen_trials(results, options.where), trials = done_of(chosen);
  if (trials.empty())
    throw_input("no trial is done", results.directory.empty() ? results.name : results.directory,
                "concertina study run");
  if (options.kind == PlotKind::front) {
    StudyPlot plot = plot_front(results, options);
    dress(plot.chart, options);
    return plot;
  }
  const PlotShape shape = plot_shape(results, trials, options);
  const FigureName x = name_of_figure(shape.x), y = name_of_figure(shape.y.name);
  StudyPlot plot{.kind = shape.kind, .notes = plot_notes(results, chosen, shape, options)};
  Chart& chart = plot.chart;
  chart.x = {.label = x.label, .unit = x.unit};
  chart.y = {.label = y.label, .unit = y.unit};
  switch (shape.kind) {
    case PlotKind::bars:
      chart.marks = plot_bars(trials, shape, options);
      break;
    case PlotKind::heatmap:
      chart.marks = plot_heat_map(trials, shape, options);
      chart.y = {.label = name_of_figure(shape.group[0]).label};
      break;
    case PlotKind::pareto:
      chart.marks = plot_scatter(results, trials, shape, options);
      break;
    default:
      if (shape.x == "step") {
        chart.marks = plot_curves(trials, shape, options);
        break;
      }
      chart.marks = plot_lines(trials, shape, options);
      std::vector<double> values;
      for (const Cell& cell : cells_in(trials, shape.x)) values.push_back(std::get<double>(cell));
      chart.x.scale = scale_for(values);
  }
  dress(chart, options);
  return plot;
}

nlohmann::ordered_json to_json(const StudyPlot& plot) {
  using Json = nlohmann::ordered_json;
  Json json = {{"kind", name_of(plot.kind)}, {"series", Json::array()}, {"notes", plot.notes}};
  if (const auto* lines = std::get_if<Lines>(&plot.chart.marks))
    for (const LineSeries& line : lines->series)
      json["series"].push_back({{"name", line.name},
                                {"x", line.x},
                                {"y", line.y},
                                {"low", line.low},
                                {"high", line.high}});
  if (const auto* bars = std::get_if<Bars>(&plot.chart.marks))
    for (const BarSeries& bar : bars->series)
      json["series"].push_back({{"name", bar.name},
                                {"x", bars->groups},
                                {"y", bar.values},
                                {"low", bar.low},
                                {"high", bar.high},
                                {"points", bar.points}});
  if (const auto* map = std::get_if<HeatMap>(&plot.chart.marks))
    for (std::size_t r = 0; r < map->rows.size(); ++r)
      json["series"].push_back(
          {{"name", map->rows[r]}, {"x", map->columns}, {"y", map->values[r]}});
  if (const auto* scatter = std::get_if<Scatter>(&plot.chart.marks))
    for (const ScatterSeries& series : scatter->series)
      for (const NamedPoint& point : series.points) {
        Json& one = json["series"].emplace_back(
            Json{{"name", point.name}, {"group", series.name}, {"x", point.x}, {"y", point.y}});
        if (point.x_low) one.update({{"x_low", *point.x_low}, {"x_high", *point.x_high}});
        if (point.y_low) one.update({{"y_low", *point.y_low}, {"y_high", *point.y_high}});
      }
  return json;
}

}  // namespace concertina
