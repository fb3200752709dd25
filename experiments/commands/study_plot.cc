// `concertina study plot`.
#include "experiments/results/study_plot.h"

#include <fmt/format.h>

#include "experiments/commands/command_study.h"
#include "experiments/study/study_folder.h"
#include "io/figure/write_figure.h"

namespace concertina {
namespace {

struct StudyPlotCommand {
  std::string directory, kind, spread = "sd", output, x_scale, y_scale;
  PlotOptions plot;
  bool json = false;
};

std::optional<Scale> scale_of(const std::string& word) {
  if (word.empty()) return std::nullopt;
  return word == "log2" ? Scale::log2 : word == "log" ? Scale::log : Scale::linear;
}

int run_study_plot(const StudyPlotCommand& options) {
  require_figure(options.output);
  PlotOptions chosen = options.plot;
  if (!options.kind.empty()) chosen.kind = plot_kind(options.kind);
  chosen.spread = plot_spread(options.spread);
  chosen.x_scale = scale_of(options.x_scale);
  chosen.y_scale = scale_of(options.y_scale);
  const StudyPlot plot = plot_study(read_study(options.directory), chosen);
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

}  // namespace

Runner add_study_plot(CLI::App& app) {
  auto options = std::make_shared<StudyPlotCommand>();
  PlotOptions& plot = options->plot;
  app.add_option("study", options->directory, "the study's folder")->type_name("STUDY")->required();
  app.add_option("--out", options->output, "the file to write: .svg, .pdf or .png")
      ->type_name("FILE")
      ->required();
  app.add_option("--kind", options->kind, "lines, bars, heatmap or pareto; by x if not given");
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
  app.add_option("--spread", options->spread,
                 "around means: sd (standard deviation), ci (interval of the mean) or none")
      ->capture_default_str();
  app.add_option("--confidence", plot.confidence, "of the interval of the mean")
      ->check(number(0.01, 0.9999))
      ->capture_default_str();
  app.add_flag("--mixed", plot.mixed, "trials of different programs or processors all the same");
  declare_look(app, *options);
  app.add_flag("--json", options->json, "print what is drawn as one JSON object, nothing else");
  return [options](MpiEnvironment&) { return run_study_plot(*options); };
}

}  // namespace concertina
