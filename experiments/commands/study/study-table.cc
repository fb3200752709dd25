// `concertina study table`: declares the options; the work is done in Python.
#include "experiments/commands/python_command.h"

namespace concertina {
namespace {

int run_study_table(const CommandOptions& options) {
  for (const char* const option : {"--format", "--cells"})
    options.excludes(option, "--json without --out", options.json && !options.given("--out"));
  return run_passed(options);
}

void add_study_table_options(CLI::App& app, CommandOptions& options) {
  add_group_options(app, options);
  add_text_option(app, "--format", "FORMAT", "output format: text, csv, markdown, latex or html")
      ->default_str("text");
  add_text_option(app, "--cells", "KIND",
                  "contents of cells: mean-sd, mean-ci (confidence interval), difference (mean-sd "
                  "and difference from the baseline) or full (default: mean-sd; full for text)");
  add_list_option(app, "--front", "COLUMN,COLUMN",
                  "show gains over the baseline in one metric against losses in another");
  add_text_option(app, "--out", "FILE", "write to this file instead of printing");
}

}  // namespace

Command command_study_table() {
  return make_command<CommandOptions>(
      "print means, spreads and differences over the trials of a study", add_study_table_options,
      run_study_table);
}

}  // namespace concertina
