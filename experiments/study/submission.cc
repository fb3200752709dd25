#include "experiments/study/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <set>
#include <sstream>

#include "core/error.h"
#include "experiments/machine/machine.h"
#include "experiments/study/trial_launch.h"
#include "io/file.h"
#include "io/log_lines.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// A value of an #SBATCH line, in quotes.
std::string sbatch_value(const std::string& text, const std::string& where) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n') throw_input("a name with a line's end cannot be in a batch script", where, "");
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

/// A folder's name in a pattern of file names, where % begins what Slurm replaces.
std::string no_pattern(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

/// Seconds before the end of the time limit at which a task is told to commit a checkpoint.
int seconds_before_end(int minutes) {
  constexpr int kUsual = 120, kShare = 15;  // of a short limit, a quarter
  return minutes > 0 ? std::min(kUsual, kShare * minutes) : kUsual;
}

/// Options of sbatch that the study sets itself, with the variables that would override them.
struct OwnOption {
  std::string_view name;
  char letter;  // 0: it has none
  const char* variable;
};
constexpr OwnOption kOwnOptions[] = {{"--array", 'a', "SBATCH_ARRAY_INX"},
                                     {"--output", 'o', "SBATCH_OUTPUT"},
                                     {"--open-mode", 0, "SBATCH_OPEN_MODE"},
                                     {"--signal", 0, "SBATCH_SIGNAL"}};

/// Whether sbatch reads `word` as `own`: it accepts abbreviations of long options, and several
/// letters in one word.
bool is_option(std::string_view word, const OwnOption& own) {
  if (word.starts_with("--")) {
    const std::string_view name = word.substr(0, word.find('='));
    return name.size() > 2 && own.name.starts_with(name);
  }
  if (!word.starts_with('-') || own.letter == 0) return false;
  constexpr std::string_view kWithoutValue = "hHOQuvVWX";
  const std::size_t last = word.find_first_not_of(kWithoutValue, 1);
  return last != std::string_view::npos && word[last] == own.letter;
}

void require_own_options(const std::string& more) {
  for (const OwnOption& own : kOwnOptions)
    if (std::getenv(own.variable) != nullptr)
      throw_input(
          fmt::format("{} overrides {}, which the study sets itself", own.variable, own.name),
          "environment", fmt::format("unset {}", own.variable));
  if (more.empty()) return;
  if (more.find('\n') != std::string::npos)
    throw_input("--sbatch has more than one line", "--sbatch", "options in one line");
  for (const std::string& word : split_words(more, "--sbatch"))
    for (const OwnOption& own : kOwnOptions)
      if (is_option(word, own))
        throw_input(fmt::format("{} sets {}, which the study sets itself", word, own.name),
                    "--sbatch",
                    "other options of sbatch; --at-once K bounds how many tasks run at once");
}

/// The task's output is in the folder of its trial. Slurm knows its index alone, which it can pad:
/// index 7 of the array from trial 2000 on is in 2%3a, that is 2007.
std::string output_of(const BatchJob& job) {
  const TrialArray& array = job.array;
  std::string trial = "%a";
  if (array.first > 0) {
    const std::string first = std::to_string(array.first);
    trial = first.substr(0, first.size() - static_cast<std::size_t>(array.digits));
    if (array.digits > 0) trial += fmt::format("%{}a", array.digits);
  }
  return fmt::format("{}/{}/{}", no_pattern(job.study), trial, kSlurmFile);
}

std::vector<int> indices_of(const TrialArray& array) {
  std::vector<int> indices;
  for (const int trial : array.trials) indices.push_back(trial - array.first);
  return indices;
}

std::string directives(const BatchJob& job, const BatchOptions& options) {
  std::vector<std::string> lines = {
      "--job-name=" + sbatch_value(job.name, "name"),
      "--array=" + to_ranges(indices_of(job.array)) +
          (options.at_once > 0 ? fmt::format("%{}", options.at_once) : ""),
      fmt::format("--ntasks={}", job.ranks)};
  if (options.nodes > 0) lines.push_back(fmt::format("--nodes={}", options.nodes));
  if (options.cpus_per_task > 0)
    lines.push_back(fmt::format("--cpus-per-task={}", options.cpus_per_task));
  if (options.minutes > 0) lines.push_back(fmt::format("--time={}", options.minutes));
  if (!options.partition.empty())
    lines.push_back("--partition=" + sbatch_value(options.partition, "--partition"));
  lines.push_back("--chdir=" + sbatch_value(job.directory, "the working directory"));
  lines.push_back("--output=" + sbatch_value(output_of(job), "the study's folder"));
  lines.push_back(fmt::format("--requeue --open-mode=append --signal=B:USR1@{}",
                              seconds_before_end(options.minutes)));
  if (!options.more.empty()) lines.push_back(options.more);
  std::string text;
  for (const std::string& line : lines) text += "#SBATCH " + line + "\n";
  return text;
}

/// The jobs of all submissions of the study, and the trials that were in one.
struct Submitted {
  std::map<std::string, int> jobs;  // and the trial before that of index 1
  std::set<int> trials;
};

/// A line that was cut short counts for nothing: its trials are submitted again at worst.
Submitted submitted_before(const std::string& study) {
  Submitted before;
  std::uint64_t from = 0;
  each_log_object(study + "/" + kSubmissionsFile, from, [&](const nlohmann::json& json, bool) {
    if (!json.contains("job") || !json["job"].is_string()) return;
    const auto first = json.find("first");  // absent: trials are indices
    before.jobs.emplace(json["job"].get<std::string>(),
                        first != json.end() && first->is_number_integer() ? first->get<int>() : 0);
    for (const auto& trial : json.value("trials", nlohmann::json::array()))
      if (trial.is_number_integer()) before.trials.insert(trial.get<int>());
  });
  return before;
}

/// The tasks that wait or run; `unknown`: why that cannot be known.
std::optional<std::vector<SlurmTask>> asked(std::string& unknown) {
  try {
    std::optional<std::vector<SlurmTask>> tasks = slurm_tasks();
    if (!tasks) unknown = "there is no squeue on PATH";
    return tasks;
  } catch (const Error& error) {
    unknown = error.message();
    return std::nullopt;
  }
}

}  // namespace

void require_sbatch() {
  if (find_program("sbatch").empty())
    throw_input(
        "there is no sbatch on PATH", "this machine",
        "a machine of a cluster with Slurm; --dry-run shows the script anywhere; `concertina "
        "study run` needs no Slurm");
}

std::string submit_batch(const std::string& script, const std::string& after) {
  std::vector<std::string> words = {"sbatch", "--parsable", script};
  if (!after.empty()) words.insert(words.begin() + 2, "--dependency=afterany:" + after);
  const std::string said =
      slurm_says(words, "what sbatch says above, in the script or in --sbatch");
  // Warnings come first; then "12", or "12;CLUSTER".
  const std::string last = said.substr(said.find_last_of('\n') + 1);
  const std::string job = last.substr(0, last.find(';'));
  if (job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    throw_failure(fmt::format("sbatch printed no job ID: {}", said), script);
  return job;
}

std::vector<TrialArray> arrays_of(const std::vector<int>& trials, int size) {
  if (trials.empty() || trials.back() < size) return {{.trials = trials}};
  int width = 1, digits = 0;
  for (; width <= size / 10; width *= 10) ++digits;
  std::vector<TrialArray> arrays;
  for (const int trial : trials) {
    const int first = trial - trial % width;
    if (arrays.empty() || arrays.back().first != first)
      arrays.push_back({.first = first, .digits = digits, .trials = {}});
    arrays.back().trials.push_back(trial);
  }
  return arrays;
}

void set_launcher(const std::string& name, StudySpec& spec) {
  if (name.empty()) return;
  if (!spec.launch.command.empty())
    throw_input(fmt::format("--launcher {}, but the study has a launcher of its own", name),
                "launch.command", "one of them; the study's own is used as it is");
  if (name == "srun")
    spec.launch.command = "srun --mpi=pmix -n {ranks} {program} {args}";
  else if (name != "mpirun")
    throw_input(fmt::format("there is no launcher '{}'", name), "--launcher",
                "mpirun or srun; any other one as command in [launch]");
}

int most_ranks(const StudySpec& spec, const std::vector<int>& trials) {
  int most = 1;
  for (const Trial& trial : trials_of(spec))
    if (std::ranges::binary_search(trials, trial.number))
      most = std::max(most, ranks_of(spec, trial.settings, config_of(spec, trial.settings)));
  return most;
}

std::string batch_script(const BatchJob& job, const BatchOptions& options) {
  require_own_options(options.more);
  std::vector<std::string> command = {job.program, "study", "trial", job.study};
  const std::string launcher =
      options.launcher.empty() ? "" : " " + shell_line({"--launcher", options.launcher});
  const std::string number =
      job.array.first == 0 ? "\"$SLURM_ARRAY_TASK_ID\""
                           : fmt::format("\"$((SLURM_ARRAY_TASK_ID + {}))\"", job.array.first);
  std::string text = "#!/bin/bash\n# Each task of this array job runs one trial of the study.\n" +
                     directives(job, options) + "\n";
  // srun does not take it over from sbatch (Slurm 22.05 and later).
  if (options.cpus_per_task > 0)
    text += fmt::format("export SRUN_CPUS_PER_TASK={}\n", options.cpus_per_task);
  // Slurm's signals go to the script's process.
  text += "exec " + shell_line(command) + " " + number + launcher + "\n";
  return text;
}

Standing standing_of(const StudyResults& results) {
  const Submitted before = submitted_before(results.directory);
  Standing standing;
  std::map<int, SlurmTask> there;  // by trial
  if (!before.jobs.empty()) {
    for (SlurmTask& task : asked(standing.unknown).value_or(std::vector<SlurmTask>()))
      if (const auto job = before.jobs.find(task.job); job != before.jobs.end()) {
        task.trial = job->second + task.index;
        there.emplace(task.trial, task);
      }
  }
  for (const TrialRecord& trial : results.trials) {
    const auto task = there.find(trial.number);
    const std::string log = fmt::format("{}/{}/{}", results.directory, trial.number, kSlurmFile);
    const bool begun = before.trials.contains(trial.number) && fs::exists(log);
    if (trial.state != TrialState::open)
      standing.ended[trial.state].push_back(trial.number);
    else if (task != there.end())
      (task->second.state == "PENDING" ? standing.queued : standing.running)
          .push_back(task->second);
    else
      (begun && standing.unknown.empty() ? standing.lost : standing.left).push_back(trial.number);
  }
  return standing;
}

void note_submission(const std::string& study, const std::string& job, const TrialArray& array) {
  nlohmann::ordered_json line = {{"job", job}, {"trials", array.trials}};
  if (array.first > 0) line["first"] = array.first;
  File file(study + "/" + kSubmissionsFile, File::Mode::append);
  file.append_whole(line.dump() + "\n");
  file.sync();
}

}  // namespace concertina
