// `concertina study plot`: its options; the work is done in Python.
#include "experiments/commands/group_options.h"

namespace concertina {
namespace {

int run_study_plot(const CommandOptions& options) {
  require_passed_output(*options.app, "--out");
  return run_in_python(*options.app);
}

void add_look_options(CLI::App& app) {
  const auto scales = CLI::IsMember({"linear", "log", "log2"});
  add_text_option(app, "--x-scale", "SCALE",
                  "linear, log or log2 (default: chosen by the spread of x)")
      ->check(scales);
  add_text_option(app, "--y-scale", "SCALE", "linear, log or log2 (default: linear)")
      ->check(scales);
  add_text_option(app, "--width", "INCHES",
                  "width of the figure: 3.25 is a column of a page, 6.75 the page")
      ->check(number(1, 40))
      ->default_str("3.25");
  add_text_option(app, "--height", "INCHES", "height (default: chosen by the width)")
      ->check(number(0, 40));
  add_text_option(app, "--title", "TEXT", "title above the chart (default: none)");
}

void add_study_plot_options(CLI::App& app, CommandOptions& options) {
  add_study_folders(app);
  add_text_option(app, "--out", "FILE", "figure to write: .svg, .pdf or .png")->required();
  add_text_option(app, "--kind", "KIND",
                  "lines, bars, heatmap, pareto or front (default: chosen by x)");
  add_text_option(app, "--x", "COLUMN",
                  "an axis, a metric, or step (curves of the runs) (default: an axis of numbers if "
                  "there is one, else the first axis)");
  add_text_option(app, "--y", "COLUMN", "a metric (default: the study's metric, or held-out loss)");
  add_list_option(app, "--group", "COLUMN,...",
                  "columns whose values get a line or bar each (default: all other axes)");
  add_repeated_option(app, "--where", "COLUMN=VALUE",
                      "include only trials with this value; may be repeated");
  add_text_option(app, "--spread", "KIND",
                  "what surrounds means: sd (standard deviation), ci (interval of the mean) or "
                  "none (default: sd)");
  add_text_option(app, "--confidence", "FLOAT",
                  "confidence of the interval of the mean (default: 0.95)")
      ->check(number(0.01, 0.9999));
  add_list_option(app, "--baseline", "COLUMN=VALUE,...",
                  "baseline of a front (default: that of the study's [equivalence])");
  add_text_option(app, "--equivalent", "METRIC=MARGIN",
                  "margin that a front shows, as in `study table`");
  add_trial_options(app);
  add_look_options(app);
  add_json_option(app, options);
}

}  // namespace

Command command_study_plot() {
  return make_command<CommandOptions>(
      "draw a chart of a study: lines, bars, a heat map, points or a front", add_study_plot_options,
      run_study_plot);
}

}  // namespace concertina
