// `concertina compare`: declares the options; the work is done in Python.
#include "experiments/commands/group_options.h"

namespace concertina {
namespace {

int run_compare(const CommandOptions& options) {
  require_group_options(options);
  require_passed_output(*options.app, "--out");
  return run_in_python(*options.app);
}

void add_compare_options(CLI::App& app, CommandOptions& options) {
  add_group_options(app, options);
  add_text_option(app, "--out", "FILE", "HTML page to write")->default_str("compare.html");
  add_passed_flag(app, "--same", "exit with code 1 unless all runs are bit-identical");
}

}  // namespace

Command command_compare() {
  return make_command<CommandOptions>(
      "compare runs: configs, metrics, curves, and the first step that is not bit-identical",
      add_compare_options, run_compare);
}

}  // namespace concertina
