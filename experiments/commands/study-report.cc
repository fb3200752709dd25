// `concertina study report`.
#include "experiments/results/study_report.h"

#include "experiments/commands/study_options.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

struct StudyReportCommand : GroupOptions {
  std::string output;
};

int run_study_report(const StudyReportCommand& options) {
  if (!options.output.empty()) require_output(options.output, "--out");
  TableOptions chosen = table_options(options);
  const StudyResults results = read_group_study(options, chosen);
  if (results.loose && options.output.empty())
    throw_input("a page on runs has no folder of its own", "--out",
                "--out PAGE.html; or `concertina compare`, which has their configs and bits too");
  const std::string path =
      options.output.empty() ? run_file(results.directory, kPageFile) : options.output;
  const StudyPage page = load_study_page(results, chosen, path);
  atomic_replace(path, study_page(page));
  nlohmann::ordered_json json = to_json(page.table);
  json["report"] = path;
  print_once(options.json ? json_line(json) : path + "\n");
  return 0;
}

void add_study_report_options(CLI::App& app, StudyReportCommand& options) {
  add_group_options(app, options);
  app.add_option("--out", options.output, "the page; STUDY/report.html if not given")
      ->type_name("FILE");
  add_json_option(app, options);
}

}  // namespace

Command command_study_report() {
  return make_command<StudyReportCommand>("a page on a study: table, curves, times, trials",
                                          add_study_report_options, run_study_report);
}

}  // namespace concertina
