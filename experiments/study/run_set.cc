#include "experiments/study/run_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/config/config_toml.h"
#include "experiments/record/training_clock.h"
#include "experiments/study/config_values.h"
#include "experiments/study/results.h"
#include "experiments/study/study_folder.h"
#include "experiments/study/trial_record.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

bool has_file(const std::string& directory, const char* name) {
  return is_file(run_file(directory, name));
}

bool is_run(const std::string& directory) {
  return has_file(directory, kMetricsFile) || has_file(directory, kConfigFile);
}

/// The runs in `folder` or one level below.
std::vector<std::string> runs_in(const std::string& folder, bool below = true) {
  if (is_run(folder)) return {folder};
  std::vector<std::string> runs;
  if (has_file(folder, kStudyFile)) {
    for (const TrialRecord& trial : read_study(folder).trials)
      if (!trial.directory.empty() && is_run(trial.directory)) runs.push_back(trial.directory);
    return runs;
  }
  if (!below) return {};
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    for (const std::string& run : runs_in(entry.path().string(), false)) runs.push_back(run);
  std::ranges::sort(runs);
  return runs;
}

std::vector<std::string> all_runs(const std::vector<std::string>& folders) {
  std::vector<std::string> runs;
  for (const std::string& folder : folders) {
    if (!exists_at(folder))
      throw_input("no such file or directory", folder, "runs/NAME, or the folder of a study");
    const std::vector<std::string> found = runs_in(fs::path(folder).lexically_normal().string());
    if (found.empty())
      throw_input("no run in this folder", folder,
                  "run directories, such as runs/NAME, or the folder of a study");
    runs.insert(runs.end(), found.begin(), found.end());
  }
  for (std::string& run : runs)
    if (run.ends_with('/')) run.pop_back();
  std::vector<std::string> places;
  for (const std::string& run : runs) places.push_back(fs::weakly_canonical(run).string());
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (std::ranges::count(places, places[r]) > 1)
      throw_input("the run is listed twice", runs[r], "each run once");
  return runs;
}

/// The shortest trailing part of each path that is unique.
std::vector<std::string> short_names(const std::vector<std::string>& runs) {
  for (std::size_t parts = 1;; ++parts) {
    std::vector<std::string> names;
    bool whole = true;
    for (const std::string& run : runs) {
      const fs::path path(run);
      const auto count = static_cast<std::size_t>(std::distance(path.begin(), path.end()));
      fs::path name;
      for (auto part =
               std::next(path.begin(), static_cast<std::ptrdiff_t>(count - std::min(count, parts)));
           part != path.end(); ++part)
        name /= *part;
      names.push_back(name.string());
      whole = whole && parts >= count;
    }
    if (whole || std::set(names.begin(), names.end()).size() == names.size()) return names;
  }
}

/// The record of a run from its files, or from its completed steps if the run has not finished.
TrialRecord record_of(int number, const std::string& directory, std::string name) {
  TrialRecord record;
  record.number = number;
  record.state = TrialState::done;
  record.directory = directory;
  const RunLog log = read_log(directory);
  if (log.metrics.empty())
    throw_input("the run has not trained any steps", directory, "a run with a metrics.jsonl");
  if (!has_file(directory, kResultFile)) {
    record.metrics["steps"] = log.metrics.back().step;
    name += fmt::format(" (at step {:.0f})", log.metrics.back().step);
  }
  harvest(record);
  if (!has_file(directory, kConfigFile)) record.facts[kNoConfig] = "none";
  record.settings.emplace_back(kRunColumn, std::move(name));
  return record;
}

/// The keys that differ between configs, run.seed last; a missing key has its default.
std::vector<std::string> differing_keys(
    std::map<int, std::map<std::string, std::string>>& configs) {
  const std::map<std::string, std::string> defaults = keys_of(write_config(RunConfig{}));
  std::vector<std::string> differing;
  std::set<std::string> known;
  for (const auto& [number, keys] : configs)
    for (const auto& [key, value] : keys) known.insert(key);
  for (const std::string& key : known) {
    std::set<std::string> found;
    for (auto& [number, keys] : configs) {
      const auto fallback = defaults.find(key);
      found.insert(
          keys.emplace(key, fallback == defaults.end() ? "" : fallback->second).first->second);
    }
    if (found.size() > 1 && !is_place(key)) differing.push_back(key);
  }
  std::ranges::stable_partition(differing,
                                [](const std::string& key) { return key != "run.seed"; });
  return differing;
}

}  // namespace

StudyResults read_runs(const std::vector<std::string>& folders) {
  const std::vector<std::string> runs = all_runs(folders), names = short_names(runs);
  StudyResults results;
  results.name = counted(std::ssize(runs), "run");
  std::map<int, std::map<std::string, std::string>> configs;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const int number = static_cast<int>(r) + 1;
    results.trials.push_back(record_of(number, runs[r], names[r]));
    if (has_file(runs[r], kConfigFile)) configs[number] = keys_of_run(runs[r]);
  }
  results.loose = true;
  results.axes = differing_keys(configs);
  std::vector<std::string> numbered;
  for (std::size_t r = 0; r < names.size(); ++r)
    numbered.push_back(fmt::format("{} {}", r + 1, names[r]));
  results.notes.push_back(fmt::format("trials: {}", fmt::join(numbered, ", ")));
  for (TrialRecord& trial : results.trials)
    for (const std::string& key : results.axes)
      if (const auto config = configs.find(trial.number); config != configs.end())
        trial.settings.emplace_back(key, setting_text(config->second[key]));
  return results;
}

StudyResults read_study_or_runs(const std::vector<std::string>& folders) {
  const bool study = folders.size() == 1 && !is_run(folders[0]) && has_file(folders[0], kStudyFile);
  return study ? read_study(folders[0]) : read_runs(folders);
}

}  // namespace concertina
