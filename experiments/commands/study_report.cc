// `concertina study report`.
#include "experiments/results/study_report.h"

#include "experiments/commands/command_study.h"
#include "experiments/commands/study_options.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"

namespace concertina {
namespace {

struct StudyReportCommand : GroupOptions {
  std::string output;
  bool json = false;
};

int run_study_report(const StudyReportCommand& options) {
  if (!options.output.empty()) require_output(options.output, "--out");
  const StudyResults results = read_study(options.directory);
  const std::string path =
      options.output.empty() ? results.directory + "/report.html" : options.output;
  const StudyPage page = load_study_page(results, table_options(options), path);
  atomic_replace(path, study_page(page));
  nlohmann::ordered_json json = to_json(page.table);
  json["report"] = path;
  print_once(options.json ? json_line(json) : path + "\n");
  return 0;
}

}  // namespace

Runner add_study_report(CLI::App& app) {
  auto options = std::make_shared<StudyReportCommand>();
  add_group_options(app, *options);
  app.add_option("--out", options->output, "the page; STUDY/report.html if not given")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "print its table as one JSON object, nothing else");
  return [options](MpiEnvironment&) { return run_study_report(*options); };
}

}  // namespace concertina
