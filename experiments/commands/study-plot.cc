// `concertina study plot`.
#include "experiments/results/study_plot.h"

#include <fmt/format.h>

#include "experiments/commands/study_options.h"
#include "experiments/study/run_set.h"
#include "io/figure/write_figure.h"

namespace concertina {
namespace {

struct StudyPlotCommand : CommandOptions {
  std::vector<std::string> folders;
  std::string kind, spread = "sd", output, x_scale, y_scale, equivalent;
  PlotOptions plot;
  bool stopped = false;
};

std::optional<Scale> scale_of(const std::string& word) {
  if (word.empty()) return std::nullopt;
  return word == "log2" ? Scale::log2 : word == "log" ? Scale::log : Scale::linear;
}

/// Throws Error{bad_input} for an option that has no effect on a chart of this kind.
void require_effect(const StudyPlotCommand& options, PlotKind kind) {
  const std::string words = fmt::format("--kind {}", name_of(kind));
  const bool heatmap = kind == PlotKind::heatmap, points = kind == PlotKind::pareto;
  options.excludes("--x-scale", words, heatmap || kind == PlotKind::bars);
  options.excludes("--y-scale", words, heatmap);
  const bool front = kind == PlotKind::front;
  options.excludes("--spread", words, heatmap || points || front);
  options.excludes("--confidence", words, heatmap || points);
  options.needs("--baseline", "--kind front", front);
  options.needs("--equivalent", "--kind front", front);
}

int run_study_plot(const StudyPlotCommand& options) {
  options.needs("--confidence", "--spread ci", options.spread == "ci" || options.kind == "front");
  require_figure(options.output);
  PlotOptions chosen = options.plot;
  if (!options.kind.empty()) chosen.kind = plot_kind(options.kind);
  if (!options.equivalent.empty()) chosen.claim = claim_of(options.equivalent, "--equivalent");
  chosen.spread = plot_spread(options.spread);
  chosen.x_scale = scale_of(options.x_scale);
  chosen.y_scale = scale_of(options.y_scale);
  StudyResults results = read_study_or_runs(options.folders);
  if (options.stopped) include_stopped(results);
  const StudyPlot plot = plot_study(results, chosen);
  require_effect(options, plot.kind);
  write_figure(options.output, svg(plot.chart));
  nlohmann::ordered_json json = to_json(plot);
  json["figure"] = options.output;
  std::string text;
  for (const std::string& note : plot.notes) text += note + "\n";
  print_once(options.json ? json_line(json) : text + options.output + "\n");
  return 0;
}

void declare_look(CLI::App& app, StudyPlotCommand& options) {
  const auto scales = CLI::IsMember({"linear", "log", "log2"});
  app.add_option("--x-scale", options.x_scale, "linear, log or log2; as x is spread if not given")
      ->check(scales);
  app.add_option("--y-scale", options.y_scale, "linear (if not given), log or log2")->check(scales);
  app.add_option("--width", options.plot.width_in,
                 "inches: 3.25 is a column of a page, 6.75 the page")
      ->check(number(1, 40))
      ->capture_default_str();
  app.add_option("--height", options.plot.height_in, "inches; 0: what suits the width")
      ->check(number(0, 40));
  app.add_option("--title", options.plot.title, "above the chart; none if not given");
}

void add_study_plot_options(CLI::App& app, StudyPlotCommand& options) {
  PlotOptions& plot = options.plot;
  add_study_folders(app, options.folders);
  app.add_option("--out", options.output, "the file to write: .svg, .pdf or .png")
      ->type_name("FILE")
      ->required();
  app.add_option("--kind", options.kind,
                 "lines, bars, heatmap, pareto or front; by x if not given");
  app.add_option("--x", plot.x,
                 "an axis, a figure, or step (curves of the runs); an axis of numbers if there is "
                 "one, else the first axis")
      ->type_name("COLUMN");
  app.add_option("--y", plot.y, "a figure; the study's metric or held-out loss if not given")
      ->type_name("COLUMN");
  app.add_option("--group", plot.group, "a line or bar for each of their values; all other axes")
      ->type_name("COLUMN,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--where", plot.where, "only trials with this value; may be repeated")
      ->type_name("COLUMN=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--spread", options.spread,
                 "around means: sd (standard deviation), ci (interval of the mean) or none")
      ->capture_default_str();
  app.add_option("--confidence", plot.confidence, "of the interval of the mean")
      ->check(number(0.01, 0.9999))
      ->capture_default_str();
  app.add_option("--baseline", plot.baseline,
                 "of a front; that of the study's [equivalence] if not given")
      ->type_name("COLUMN=VALUE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--equivalent", options.equivalent, "of a front, as in `study table`")
      ->type_name("METRIC=MARGIN");
  app.add_flag("--stopped", options.stopped, kStoppedHelp);
  app.add_flag("--mixed", plot.mixed, "trials of different programs or processors all the same");
  declare_look(app, options);
  add_json_option(app, options);
}

}  // namespace

Command command_study_plot() {
  return make_command<StudyPlotCommand>(
      "a chart of a study: lines, bars, a heat map, points or a front", add_study_plot_options,
      run_study_plot);
}

}  // namespace concertina
