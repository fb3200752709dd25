// `concertina study table`.
#include "experiments/results/study_table.h"

#include <fmt/format.h>

#include "experiments/commands/study_options.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"

namespace concertina {
namespace {

struct StudyTableCommand : GroupOptions {
  std::string format = "text", cells, output;
};

int run_study_table(const StudyTableCommand& options) {
  const TableFormat format = table_format(options.format);
  const TableCells cells =
      options.cells.empty() ? default_cells(format) : table_cells_kind(options.cells);
  for (const char* const option : {"--format", "--cells"})
    options.excludes(option, "--json alone", options.json && options.output.empty());
  if (!options.output.empty()) require_output(options.output, "--out");
  TableOptions chosen = table_options(options);
  const StudyResults results = read_group_study(options, chosen);
  const StudyTable table = make_table(results, chosen);
  const std::string text = table_text(table, format, cells);
  if (!options.output.empty()) atomic_replace(options.output, text);
  if (options.json)
    print_once(json_line(to_json(table)));
  else
    print_once(options.output.empty() ? text : options.output + "\n");
  // The rows alone are data; who reads them must know what they leave out.
  if (format == TableFormat::csv && !options.json)
    for (const std::string& note : table_notes(table, cells)) fmt::print(stderr, "{}\n", note);
  return 0;
}

void add_study_table_options(CLI::App& app, StudyTableCommand& options) {
  add_group_options(app, options);
  app.add_option("--format", options.format, "text, csv, markdown, latex or html")
      ->capture_default_str();
  app.add_option("--cells", options.cells,
                 "mean-sd, mean-ci (the interval of the mean), difference (mean-sd and the "
                 "difference to the baseline) or full; full for text, else mean-sd")
      ->type_name("KIND");
  app.add_option("--front", options.table.front,
                 "what groups gain over the baseline in one figure, and lose in another")
      ->type_name("COLUMN,COLUMN")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--out", options.output, "the file to write; printed if not given")
      ->type_name("FILE");
  add_json_option(app, options);
}

}  // namespace

Command command_study_table() {
  return make_command<StudyTableCommand>("means, spread and differences over the trials of a study",
                                         add_study_table_options, run_study_table);
}

}  // namespace concertina
