// `concertina compare`: declares the options; the work is done in Python.
#include "experiments/commands/python_command.h"

namespace concertina {
namespace {

void add_compare_options(CLI::App& app, CommandOptions& options) {
  add_group_options(app, options);
  add_text_option(app, "--out", "FILE", "HTML page to write")->default_str("compare.html");
  add_passed_flag(app, "--same", "exit with code 1 unless all runs are bit-identical");
}

}  // namespace

Command command_compare() {
  return make_command<CommandOptions>(
      "compare runs: configs, metrics, curves, and the first step that is not bit-identical",
      add_compare_options, run_passed);
}

}  // namespace concertina
