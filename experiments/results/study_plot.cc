#include "experiments/results/study_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/machine/machine.h"
#include "experiments/results/provenance.h"
#include "experiments/results/study_plot_marks.h"

namespace concertina {
namespace {

constexpr std::array<std::string_view, 5> kPlotKinds = {"automatic", "lines", "bars", "heatmap",
                                                        "pareto"};
constexpr std::array<std::string_view, 3> kPlotSpreads = {"none", "sd", "ci"};
constexpr std::size_t kMostBars = 36;  // of one chart, before it is a heat map
constexpr double kWideRange = 8;       // of values on a logarithmic axis, at least

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
  shape.kind = options.kind == PlotKind::automatic ? default_kind(trials, shape) : options.kind;
  return shape;
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
  if (done.size() < chosen.size())
    notes.push_back(fmt::format("{} of {} trials are done; the others are not drawn", done.size(),
                                chosen.size()));
  std::vector<int> lost;
  if (shape.x != "step")
    for (const TrialRecord* trial : done)
      if (!std::isfinite(number_of(*trial, shape.y.name).value_or(NAN)))
        lost.push_back(trial->number);
  if (!lost.empty())
    notes.push_back(fmt::format("{} is not finite in trial{} {}: not drawn", shape.y.name,
                                lost.size() == 1 ? "" : "s", to_ranges(lost)));
  if (options.spread != PlotSpread::none && shape.kind != PlotKind::heatmap &&
      shape.kind != PlotKind::pareto)
    notes.push_back(options.spread == PlotSpread::deviation
                        ? std::string("mean and standard deviation over the trials of a point")
                        : fmt::format("mean and its {:.4g}% interval over the trials of a point",
                                      100 * options.confidence));
  return notes;
}

}  // namespace

PlotKind plot_kind(const std::string& word) {
  const auto words = std::span(kPlotKinds).subspan(1);
  const auto found = std::ranges::find(words, word);
  if (found == words.end())
    throw_input(fmt::format("'{}' is no kind of chart", word), "--kind",
                one_of(nearest_word(word, words), words));
  return static_cast<PlotKind>(found - words.begin() + 1);
}

const char* name_of(PlotKind kind) {
  return kPlotKinds.at(static_cast<std::size_t>(kind)).data();
}

PlotSpread plot_spread(const std::string& word) {
  const auto found = std::ranges::find(kPlotSpreads, word);
  if (found == kPlotSpreads.end())
    throw_input(fmt::format("'{}' is no spread", word), "--spread",
                one_of(nearest_word(word, kPlotSpreads), kPlotSpreads));
  return static_cast<PlotSpread>(found - kPlotSpreads.begin());
}

StudyPlot plot_study(const StudyResults& results, const PlotOptions& options) {
  const Trials chosen = chosen_trials(results, options.where), trials = done_of(chosen);
  if (trials.empty())
    throw_input("no trial is done", results.directory.empty() ? results.name : results.directory,
                "concertina study run");
  const PlotShape shape = plot_shape(results, trials, options);
  const FigureName x = name_of_figure(shape.x), y = name_of_figure(shape.y.name);
  StudyPlot plot{.kind = shape.kind, .chart = {}, .notes = {}};
  plot.notes = plot_notes(results, chosen, shape, options);
  Chart& chart = plot.chart;
  chart.title = options.title;
  chart.width_in = options.width_in;
  chart.height_in = options.height_in;
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
  if (options.x_scale) chart.x.scale = *options.x_scale;
  if (options.y_scale) chart.y.scale = *options.y_scale;
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
                                {"high", bar.high}});
  if (const auto* map = std::get_if<HeatMap>(&plot.chart.marks))
    for (std::size_t r = 0; r < map->rows.size(); ++r)
      json["series"].push_back(
          {{"name", map->rows[r]}, {"x", map->columns}, {"y", map->values[r]}});
  if (const auto* scatter = std::get_if<Scatter>(&plot.chart.marks))
    for (const ScatterSeries& series : scatter->series)
      for (const NamedPoint& point : series.points)
        json["series"].push_back(
            {{"name", point.name}, {"group", series.name}, {"x", point.x}, {"y", point.y}});
  return json;
}

}  // namespace concertina
