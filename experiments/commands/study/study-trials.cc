// `concertina study trials`: lists the trials of a study, or runs as trials, with all recorded
// data. The Python package reads studies from its --json output.
#include <fmt/format.h>

#include <filesystem>

#include "core/text/text_table.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/study/run_set.h"
#include "experiments/study/study_folder.h"
#include "experiments/study/trial_record.h"

namespace concertina {
namespace {

struct StudyTrialsCommand : CommandOptions {
  std::vector<std::string> folders;
};

nlohmann::ordered_json claim_json(const EquivalenceClaim& claim) {
  return {{"metric", claim.metric},
          {"margin", claim.margin},
          {"alpha", claim.alpha},
          {"baseline", claim.baseline}};
}

nlohmann::ordered_json results_json(const StudyResults& results) {
  nlohmann::ordered_json json = {
      {"study", results.name},    {"directory", results.directory},
      {"loose", results.loose},   {"axes", results.axes},
      {"metric", results.metric}, {"goal", results.minimise ? "min" : "max"},
      {"claim", nullptr},         {"rung_steps", results.rung_steps},
      {"notes", results.notes},   {"trials", nlohmann::ordered_json::array()}};
  if (results.claim) json["claim"] = claim_json(*results.claim);
  for (const TrialRecord& trial : results.trials) json["trials"].push_back(to_json(trial));
  return json;
}

std::string results_text(const StudyResults& results) {
  std::vector<std::vector<std::string>> rows = {{"trial", "state", "settings"}};
  for (const TrialRecord& trial : results.trials)
    rows.push_back(
        {fmt::format("{}", trial.number), name_of(trial.state), settings_text(trial.settings)});
  return text_table(rows, rows[0].size());
}

int run_study_trials(const StudyTrialsCommand& options) {
  const bool file = options.folders.size() == 1 && options.folders[0].ends_with(".toml") &&
                    std::filesystem::is_regular_file(options.folders[0]);
  std::string toml;
  const StudyResults results = file ? results_of(read_study_file(options.folders[0], toml), "", {})
                                    : read_study_or_runs(options.folders);
  print_once(options.json ? json_line(results_json(results)) : results_text(results));
  return 0;
}

void add_study_trials_options(CLI::App& app, StudyTrialsCommand& options) {
  app.add_option("study", options.folders,
                 "folder of a study, such as studies/NAME, or file of a study, or run directories "
                 "(not only Concertina's)")
      ->type_name("STUDY|RUN...")
      ->required();
  add_json_option(app, options);
}

}  // namespace

Command command_study_trials() {
  return make_command<StudyTrialsCommand>("list the trials of a study and their settings",
                                          add_study_trials_options, run_study_trials);
}

}  // namespace concertina
