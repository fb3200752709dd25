// `concertina study table`.
#include "experiments/results/study_table.h"

#include <fmt/format.h>

#include "experiments/commands/command_study.h"
#include "experiments/commands/study_options.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"

namespace concertina {
namespace {

struct StudyTableCommand : GroupOptions {
  std::string format = "text", cells, output;
  bool json = false;
};

int run_study_table(const StudyTableCommand& options) {
  const TableFormat format = table_format(options.format);
  const TableCells cells =
      options.cells.empty() ? default_cells(format) : table_cells_kind(options.cells);
  if (!options.output.empty()) require_output(options.output, "--out");
  const StudyTable table = make_table(read_study(options.directory), table_options(options));
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

}  // namespace

Runner add_study_table(CLI::App& app) {
  auto options = std::make_shared<StudyTableCommand>();
  add_group_options(app, *options);
  app.add_option("--format", options->format, "text, csv, markdown, latex or html")
      ->capture_default_str();
  app.add_option("--cells", options->cells,
                 "mean-sd, mean-ci (the interval of the mean), difference (mean-sd and the "
                 "difference to the baseline) or full; full for text, else mean-sd")
      ->type_name("KIND");
  app.add_option("--out", options->output, "the file to write; printed if not given")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "print the table as one JSON object, nothing else");
  return [options](MpiEnvironment&) { return run_study_table(*options); };
}

}  // namespace concertina
