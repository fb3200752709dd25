// `concertina monitor`: declares the options; the work is done in Python.
#include "experiments/commands/python_command.h"

namespace concertina {
namespace {

void add_monitor_options(CLI::App& app, CommandOptions& options) {
  add_text_option(app, "log", "LOG",
                  "JSON lines of a deployed model, with fields such as prediction, probability or "
                  "tokens")
      ->required();
  add_text_option(app, "--reference", "FILE",
                  "JSON lines to compare with, such as those that `concertina eval RUN "
                  "--predictions FILE.jsonl` writes")
      ->required();
  add_text_option(app, "--window", "ROWS", "compare each window of this many rows (default: all)")
      ->check(whole_number(1, 1 << 30));
  add_text_option(app, "--least", "FLOAT",
                  "smallest distance between distributions that counts as drift, from 0 to 1")
      ->check(number(0, 1))
      ->default_str("0.1");
  add_text_option(app, "--out", "PAGE.html", "page to write (default: none)");
  add_json_option(app, options);
}

}  // namespace

Command command_monitor() {
  return make_command<CommandOptions>(
      "compare a deployed model's predictions with a reference; exit with code 1 if a field drifts",
      add_monitor_options, run_passed);
}

}  // namespace concertina
