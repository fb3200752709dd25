// `concertina study collect`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/machine/machine.h"
#include "experiments/study/study_folder.h"
#include "experiments/study/submission.h"
#include "io/file.h"

namespace concertina {
namespace {

struct StudyCollectCommand : CommandOptions {
  std::string study;
};

constexpr std::pair<TrialState, const char*> kEnds[] = {{TrialState::done, "done"},
                                                        {TrialState::stopped, "stopped"},
                                                        {TrialState::failed, "failed"},
                                                        {TrialState::timed_out, "timed out"}};

std::string counted_trials(std::size_t count, const char* what, const std::vector<int>& numbers) {
  return fmt::format("{:<10} {:>5}   {}\n", what, count, to_ranges(numbers));
}

std::string tasks_text(const std::vector<SlurmTask>& tasks, const char* what) {
  std::string text;
  for (const SlurmTask& task : tasks)
    text += fmt::format("{:<10} {:>5}   job {}_{}, {}{}{}\n", what, task.trial, task.job,
                        task.index, task.state, task.nodes.empty() ? "" : " on ", task.nodes);
  return text;
}

std::string collect_text(const StudyResults& results, const Standing& standing) {
  std::string text;
  for (const auto& [state, what] : kEnds)
    if (const auto found = standing.ended.find(state); found != standing.ended.end())
      text += counted_trials(found->second.size(), what, found->second);
  if (!standing.running.empty() || !standing.queued.empty())
    text += "\n" + tasks_text(standing.running, "running") + tasks_text(standing.queued, "queued") +
            "\n";
  if (!standing.lost.empty())
    text += counted_trials(standing.lost.size(), "lost", standing.lost) +
            "  their tasks are gone and wrote no record (slurm.txt and log.txt of the trial tell "
            "more)\n";
  if (!standing.left.empty()) text += counted_trials(standing.left.size(), "left", standing.left);
  if (!standing.lost.empty() || !standing.left.empty())
    text += "  concertina study submit takes these\n";
  if (!standing.unknown.empty())
    text += fmt::format("what waits or runs is not known: {}\n", standing.unknown);
  return text + (standing.ended.empty()
                     ? std::string("no results yet\n")
                     : fmt::format("results: {}/{}\n", results.directory, kResultsFile));
}

nlohmann::ordered_json tasks_json(const std::vector<SlurmTask>& tasks) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SlurmTask& task : tasks)
    list.push_back(
        {{"trial", task.trial}, {"job", task.job}, {"state", task.state}, {"nodes", task.nodes}});
  return list;
}

nlohmann::ordered_json collect_json(const StudyResults& results, const Standing& standing) {
  nlohmann::ordered_json json = {{"study", results.directory}};
  for (const auto& [state, what] : kEnds) {
    const auto found = standing.ended.find(state);
    json[state == TrialState::timed_out ? "timed_out" : what] =
        found == standing.ended.end() ? std::vector<int>() : found->second;
  }
  json["running"] = standing.unknown.empty() ? tasks_json(standing.running) : nullptr;
  json["queued"] = standing.unknown.empty() ? tasks_json(standing.queued) : nullptr;
  json["lost"] = standing.lost;
  json["left"] = standing.left;
  return json;
}

int collect_study(const StudyCollectCommand& options) {
  const StudySpec spec = read_study_folder_spec(options.study);
  // As it was written: opening the folder writes results.csv from the records.
  constexpr std::uint64_t kMostBytes = 16 << 20;
  const StudyFolder folder(options.study, spec,
                           read_file(StudyPaths(options.study, spec).study(), kMostBytes));
  const StudyResults results = read_study(folder.paths().root);
  const Standing standing = standing_of(results);
  print_once(options.json ? json_line(collect_json(results, standing))
                          : collect_text(results, standing));
  return 0;
}

void add_study_collect_options(CLI::App& app, StudyCollectCommand& options) {
  add_study_folder(app, options.study);
  add_json_option(app, options);
}

}  // namespace

Command command_study_collect() {
  return make_command<StudyCollectCommand>("write results.csv, and say where each trial stands",
                                           add_study_collect_options, collect_study);
}

}  // namespace concertina
