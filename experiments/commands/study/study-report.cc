// `concertina study report`: declares the options; the work is done in Python.
#include "experiments/commands/group_options.h"

namespace concertina {
namespace {

int run_study_report(const CommandOptions& options) {
  require_group_options(options);
  require_passed_output(*options.app, "--out");
  return run_in_python(*options.app);
}

void add_study_report_options(CLI::App& app, CommandOptions& options) {
  add_group_options(app, options);
  add_text_option(app, "--out", "FILE", "HTML page to write (default: STUDY/report.html)");
}

}  // namespace

Command command_study_report() {
  return make_command<CommandOptions>("write a page about a study: table, curves, time use, trials",
                                      add_study_report_options, run_study_report);
}

}  // namespace concertina
