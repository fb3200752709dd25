// `concertina study plot`: declares the options; the work is done in Python.
#include "experiments/commands/python_command.h"

namespace concertina {
namespace {

void add_look_options(CLI::App& app) {
  const auto scales = CLI::IsMember({"linear", "log", "log2"});
  add_text_option(app, "--x-scale", "SCALE",
                  "scale of x: linear, log or log2 (default: based on the spread of x)")
      ->check(scales);
  add_text_option(app, "--y-scale", "SCALE", "scale of y: linear, log or log2 (default: linear)")
      ->check(scales);
  add_text_option(app, "--width", "INCHES",
                  "width of the chart: 3.25 for one of two columns, 6.75 for the whole page")
      ->check(number(1, 40))
      ->default_str("3.25");
  add_text_option(app, "--height", "INCHES", "height of the chart (default: based on the width)")
      ->check(number(0, 40));
  add_text_option(app, "--title", "TEXT", "title above the chart (default: none)");
}

void add_study_plot_options(CLI::App& app, CommandOptions& options) {
  add_study_folders(app);
  add_text_option(app, "--out", "FILE", "chart to write: .svg, .pdf or .png")->required();
  add_text_option(app, "--kind", "KIND",
                  "kind of chart: lines, bars, heatmap, pareto or front (default: based on x)");
  add_text_option(app, "--x", "COLUMN",
                  "column for x: an axis, a metric, or step for curves of the runs (default: the "
                  "first numeric axis, otherwise the first axis)");
  add_text_option(app, "--y", "COLUMN",
                  "metric for y (default: the study's metric, or held-out loss)");
  add_list_option(app, "--group", "COLUMN,...",
                  "columns whose values each define a line or bar (default: all other axes)");
  add_repeated_option(app, "--where", "COLUMN=VALUE",
                      "include only trials with this value; may be repeated");
  add_text_option(app, "--spread", "KIND",
                  "spread shown around means: sd (standard deviation), ci (confidence interval) or "
                  "none (default: sd)");
  add_text_option(app, "--confidence", "FLOAT", "confidence level of ci (default: 0.95)")
      ->check(number(0.01, 0.9999));
  add_list_option(app, "--baseline", "COLUMN=VALUE,...",
                  "baseline of a front (default: the baseline in the study's [equivalence])");
  add_text_option(app, "--equivalent", "METRIC=MARGIN",
                  "margin shown in a front, as in `study table`");
  add_trial_options(app);
  add_look_options(app);
  add_json_option(app, options);
}

}  // namespace

Command command_study_plot() {
  return make_command<CommandOptions>(
      "draw a chart of a study: lines, bars, a heat map, points or a front", add_study_plot_options,
      run_passed);
}

}  // namespace concertina
