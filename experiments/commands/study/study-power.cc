// `concertina study power`: declares the options; the work is done in Python.
#include "experiments/commands/python_command.h"
#include "experiments/study/results.h"

namespace concertina {
namespace {

int run_study_power(const CommandOptions& options) {
  options.excludes("--deviation", "--pilot", options.given("--pilot"));
  return run_passed(options);
}

void add_study_power_options(CLI::App& app, CommandOptions& options) {
  add_text_option(app, "study", "STUDY.toml|FOLDER",
                  "study file, or folder of a study that was started")
      ->required();
  add_text_option(app, "--pilot", "STUDY",
                  "study from which to estimate the standard deviation of paired differences");
  add_text_option(app, "--deviation", "FLOAT",
                  "standard deviation of paired differences, in the metric's own unit")
      ->check(number(0, kMostMargin));
  add_text_option(app, "--difference", "FLOAT", "true difference, in the metric's own unit")
      ->check(number(-kMostMargin, kMostMargin))
      ->default_str("0");
  add_text_option(app, "--power", "FLOAT", "power to compute the number of seeds for")
      ->check(number(0.01, 0.9999))
      ->default_str("0.8");
  add_text_option(app, "--seeds", "INT", "number of seeds (default: the study's)")
      ->check(whole_number(2, 1 << 20));
  add_equivalent_options(app);
  add_list_option(app, "--baseline", "COLUMN=VALUE,...",
                  "baseline of the pilot (default: the baseline in [equivalence])");
  add_json_option(app, options);
}

}  // namespace

Command command_study_power() {
  return make_command<CommandOptions>(
      "compute the probability that a planned study shows an equivalence", add_study_power_options,
      run_study_power);
}

}  // namespace concertina
