#include "experiments/study/study_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/study/sampler.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRecordBytes = 256 << 20;
constexpr std::uint64_t kMostSpecBytes = 16 << 20;

/// The path of the study's copy of a base file.
std::string base_copy(const std::string& directory, std::size_t index, const std::string& path) {
  return fmt::format("{}/base/{}-{}", directory, index + 1, fs::path(path).filename().string());
}

std::string without_slash(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  return directory;
}

/// The numbers of trials that have a directory.
std::vector<int> numbered(const std::string& directory) {
  std::vector<int> numbers;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const int number = parse_number<int>(entry.path().filename().string()).value_or(0);
    if (number > 0) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// Reads the record of a trial, if any, into `trials`.
void read_trial(const StudyPaths& paths, int number, std::map<int, TrialRecord>& trials) {
  const std::string path = paths.record(number);
  if (!fs::exists(path)) return;
  TrialRecord trial = read_record(read_file(path, kMostRecordBytes), path);
  if (trial.number != number)
    throw_input(fmt::format("the file is the record of trial {}", trial.number), path,
                "move each record to the directory of its trial");
  trial.directory = paths.run(number);  // at its current location
  trials.insert_or_assign(number, std::move(trial));
}

std::map<int, TrialRecord> read_trials(const StudyPaths& paths, const StudySpec& spec) {
  std::map<int, TrialRecord> trials;
  for (const int number : numbered(paths.root)) read_trial(paths, number, trials);
  const std::string digest = study_digest(spec);
  for (const auto& [number, trial] : trials)
    if (trial.study != digest)
      throw_input("the trial's record belongs to another study: base configs or [set] differ",
                  paths.record(number),
                  "remove the trial's directory to repeat the trial with `study run`");
  return trials;
}

}  // namespace

StudyResults results_of(const StudySpec& spec, const std::string& directory,
                        const std::map<int, TrialRecord>& stored) {
  StudyResults results;
  results.name = fs::path(directory).lexically_normal().filename().string();
  results.directory = directory;
  results.file = directory + "/" + kStudyFile;
  results.axes = axes_of(spec);
  results.metric = spec.search.metric;
  results.minimise = spec.search.minimise;
  results.claim = spec.claim;
  std::map<int, TrialRecord> trials;
  const SearchMethod& method = method_of(spec.search);
  if (!method.proposes())
    for (Trial& trial : trials_of(spec)) {
      TrialRecord& open = trials[trial.number];
      open.number = trial.number;
      open.settings = std::move(trial.settings);
    }
  if (method.rungs != nullptr && !trials.empty())
    results.rung_steps = method.rungs(spec.search.options,
                                      config_of(spec, trials.begin()->second.settings).run.steps);
  for (const auto& [number, trial] : stored) {
    trials[number] = trial;
    if (!method.proposes()) continue;  // arms have keys that are not axes
    for (const auto& [key, value] : trial.settings)
      if (std::ranges::find(results.axes, key) == results.axes.end()) results.axes.push_back(key);
  }
  for (auto& [number, trial] : trials) results.trials.push_back(std::move(trial));
  return results;
}

StudyPaths::StudyPaths(const std::string& directory, const StudySpec& spec)
    : root(without_slash(directory)) {
  for (std::size_t i = 0; i < spec.bases.size(); ++i) {
    const std::string& path = spec.bases[i].path;  // in read_study_folder_spec(), itself a copy
    base_files.push_back(path.starts_with(root + "/base/") ? path : base_copy(root, i, path));
  }
}

StudyFolder::StudyFolder(const std::string& directory, const StudySpec& spec,
                         const std::string& toml)
    : spec_(spec), paths_(directory, spec), results_(paths_.results()) {
  const std::string& root = paths_.root;
  if (fs::exists(root) && !fs::exists(paths_.study()) && !fs::is_empty(root) &&
      !fs::exists(root + "/study.lock"))
    throw_input("the folder is not empty and does not contain a study", root,
                "an empty folder, or another name for the study");
  make_directories(root);
  lock_ = FileLock(root + "/study.lock", "this study", "wait until it has finished, or stop it");
  claim(spec, toml);
  trials_ = read_trials(paths_, spec_);
  results_.require_own(results_of(spec_, root, trials_));
  if (!trials_.empty()) write_results();
}

StudyFolder::StudyFolder(const std::string& directory, const StudySpec& spec, int number)
    : spec_(spec), paths_(directory, spec), whole_(false), results_(paths_.results()) {
  read_trial(paths_, number, trials_);
}

void StudyFolder::claim(const StudySpec& spec, const std::string& toml) {
  if (fs::exists(paths_.study())) require_same_study(paths_.root, spec);
  make_directories(paths_.root + "/base");
  for (std::size_t i = 0; i < spec.bases.size(); ++i)
    atomic_replace(paths_.base_files[i], spec.bases[i].text);
  atomic_replace(paths_.study(), toml);
}

void StudyFolder::require_there() const {
  if (!exists_at(paths_.study()))
    throw_failure(
        "the study's folder was removed or moved while the study ran", paths_.root,
        "rerun the same command, or restore the folder and run `study run` with its path");
}

void StudyFolder::save(TrialRecord trial) {
  require_there();
  trial.study = study_digest(spec_);
  make_directories(paths_.trial(trial.number));
  atomic_replace(paths_.record(trial.number), record_text(trial));
  trials_.insert_or_assign(trial.number, std::move(trial));
  if (results_.is_due()) write_results();
}

FileLock StudyFolder::lock(int number) {
  require_there();
  make_directories(paths_.trial(number));
  FileLock lock(paths_.trial(number) + "/trial.lock", fmt::format("trial {}", number),
                "wait until it has finished, or stop it");
  read_trial(paths_, number, trials_);
  return lock;
}

void StudyFolder::reopen(const std::vector<int>& numbers) {
  std::size_t erased = 0;
  for (const int number : numbers) erased += trials_.erase(number);
  if (erased == 0) return;
  write_results();  // first, or the line of a reopened trial would look edited
  for (const int number : numbers) fs::remove(paths_.record(number));
}

void StudyFolder::settle() {
  if (!whole_ || trials_.empty()) return;
  results_.require_untouched();
  write_results();
}

void StudyFolder::write_results() {
  if (whole_) results_.write(results_of(spec_, paths_.root, trials_));
}

void require_same_study(const std::string& directory, const StudySpec& spec) {
  const std::string difference = study_difference(read_study_folder_spec(directory), spec);
  if (!difference.empty())
    throw_input(
        fmt::format("the folder belongs to another study: {}", difference), directory,
        fmt::format("another `name` in the study's file, or another --dir; to continue that other "
                    "study: concertina study run {}",
                    directory));
}

StudySpec read_study_folder_spec(const std::string& directory) {
  const std::string root = without_slash(directory), path = root + "/" + kStudyFile;
  if (!fs::exists(path))
    throw_input("not the folder of a study: study.toml is missing", root,
                "the folder that `concertina study run` printed, such as studies/NAME");
  return read_study_spec(
      read_input_file(path, kMostSpecBytes, "a study's file"), path,
      [&](std::size_t index, const std::string& base) { return base_copy(root, index, base); });
}

StudyResults read_study(const std::string& directory) {
  const StudySpec spec = read_study_folder_spec(without_slash(directory));
  const StudyPaths paths(directory, spec);
  StudyResults results = results_of(spec, paths.root, read_trials(paths, spec));
  ResultsFile(paths.results()).require_own(results);
  return results;
}

}  // namespace concertina
