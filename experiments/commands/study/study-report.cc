// `concertina study report`: declares the options; the work is done in Python.
#include "experiments/commands/python_command.h"

namespace concertina {
namespace {

void add_study_report_options(CLI::App& app, CommandOptions& options) {
  add_group_options(app, options);
  add_text_option(app, "--out", "FILE", "HTML page to write (default: STUDY/report.html)");
}

}  // namespace

Command command_study_report() {
  return make_command<CommandOptions>("write a page about a study: table, curves, time use, trials",
                                      add_study_report_options, run_passed);
}

}  // namespace concertina
