// `concertina study collect`: declares the options and writes results.csv; Python reports the
// trials' states.
#include "experiments/commands/python_command.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/study/study_folder.h"

namespace concertina {
namespace {

struct StudyCollectCommand : CommandOptions {
  std::string study;
};

int collect_study(const StudyCollectCommand& options) {
  const auto [spec, toml, directory] = read_folder_study(options.study);
  const StudyFolder folder(directory, spec, toml);  // writes results.csv from the records
  return run_in_python(*options.app);
}

void add_study_collect_options(CLI::App& app, StudyCollectCommand& options) {
  add_study_folder(app, options.study);
  add_json_option(app, options);
}

}  // namespace

Command command_study_collect() {
  return make_command<StudyCollectCommand>("write results.csv and report the state of each trial",
                                           add_study_collect_options, collect_study);
}

}  // namespace concertina
