// `concertina study submit`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/commands/command.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/machine/machine.h"
#include "experiments/study/sampler.h"
#include "experiments/study/submission.h"
#include "experiments/study/trial_launch.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

struct StudySubmitCommand : StudyFileOptions {
  BatchOptions batch;
};

/// The trials that there are to submit, and those that wait or run already.
struct ToSubmit {
  std::vector<int> trials, again, under_way;  // again: of `trials`, those that failed
};

ToSubmit what_is_left(const StudyResults& results, bool retry_failed) {
  const Standing standing = standing_of(results);
  if (!standing.unknown.empty())
    throw_failure(fmt::format("cannot tell which jobs of this study are queued or running: {}",
                              standing.unknown),
                  results.directory, "try again once squeue answers");
  ToSubmit what;
  for (const std::vector<SlurmTask>& tasks : {standing.queued, standing.running})
    for (const SlurmTask& task : tasks) what.under_way.push_back(task.trial);
  if (retry_failed)
    for (const TrialState state : {TrialState::failed, TrialState::timed_out})
      if (const auto found = standing.ended.find(state); found != standing.ended.end())
        what.again.insert(what.again.end(), found->second.begin(), found->second.end());
  for (const std::vector<int>& some : {standing.left, standing.lost, what.again})
    what.trials.insert(what.trials.end(), some.begin(), some.end());
  for (std::vector<int>* numbers : {&what.trials, &what.again, &what.under_way})
    std::ranges::sort(*numbers);
  return what;
}

/// The results that the study will have once it is in its folder: it may have more trials there.
StudyResults results_to_be(const StudySpec& spec, const std::string& directory) {
  StudyResults results;
  results.directory = directory;
  if (fs::exists(StudyPaths(directory, spec).study())) {
    require_same_study(directory, spec);
    results = read_study(directory);
  }
  const std::size_t before = results.trials.size();
  for (Trial& trial : trials_of(spec)) {
    if (static_cast<std::size_t>(trial.number) <= before) continue;
    TrialRecord& record = results.trials.emplace_back();
    record.number = trial.number;
    record.settings = std::move(trial.settings);
  }
  return results;
}

std::string script_of(const StudySpec& spec, const std::string& directory, const TrialArray& array,
                      const BatchOptions& options) {
  return batch_script({.name = spec.name,
                       .program = own_program(),
                       .study = fs::absolute(directory).lexically_normal().string(),
                       .directory = fs::current_path().string(),
                       .array = array,
                       .ranks = most_ranks(spec, array.trials)},
                      options);
}

/// Submits one array; returns the job. The records of trials that are repeated go first, and come
/// back if nothing could be submitted.
std::string submit_array(StudyFolder& folder, const StudySpec& spec, const TrialArray& array,
                         const std::string& after, const ToSubmit& what,
                         const BatchOptions& options) {
  const std::string& root = folder.paths().root;
  const std::string script = array.first == 0
                                 ? root + "/submit.sbatch"
                                 : fmt::format("{}/submit-{}.sbatch", root, array.first);
  atomic_replace(script, script_of(spec, root, array, options));
  std::vector<int> again;
  std::ranges::set_intersection(array.trials, what.again, std::back_inserter(again));
  for (const int number : array.trials) make_directories(folder.paths().trial(number));
  const std::map<int, StoredTrial> before = folder.trials();
  folder.reopen(again);
  std::string job;
  try {
    job = submit_batch(script, after);
  } catch (const Error&) {
    for (const int number : again) folder.save(before.at(number));
    throw;
  }
  note_submission(root, job, array);
  return job;
}

/// Submits what is left; returns the jobs. With --at-once an array begins when the one before it
/// has ended, since Slurm counts the tasks of one array alone.
std::vector<std::string> submit(StudyFolder& folder, const StudySpec& spec, const ToSubmit& what,
                                const BatchOptions& options) {
  std::vector<std::string> jobs;
  for (const TrialArray& array : arrays_of(what.trials, most_array_indices())) {
    const bool chained = options.at_once > 0 && !jobs.empty();
    try {
      jobs.push_back(submit_array(folder, spec, array, chained ? jobs.back() : "", what, options));
    } catch (const Error& error) {
      if (jobs.empty()) throw;
      throw Error(error.code(),
                  fmt::format("{}; trials below {} were submitted, as {}", error.message(),
                              array.trials[0], fmt::join(jobs, ", ")),
                  error.where(), error.fix() + "; the same command submits the rest");
    }
  }
  return jobs;
}

std::string submit_text(const std::string& root, const ToSubmit& what,
                        const std::vector<std::string>& jobs) {
  std::string text;
  if (!what.under_way.empty())
    text += fmt::format("left alone: {}, which {} submitted before and wait or run\n",
                        to_ranges(what.under_way), what.under_way.size() == 1 ? "was" : "were");
  if (jobs.empty()) return text + fmt::format("nothing is left to submit of {}\n", root);
  return text + fmt::format(
                    "submitted {} of {} as {} {}: {}\n"
                    "follow it   squeue --array --jobs {}; tail -f {}\n"
                    "results     concertina study collect {}\n"
                    "pause it    scancel -b -s USR1 {} (checkpoints; each task goes on later)\n"
                    "end it      scancel {}; the same command submits what is left\n",
                    counted(std::ssize(what.trials), "trial"), root,
                    jobs.size() == 1 ? "job" : "jobs", fmt::join(jobs, ", "),
                    to_ranges(what.trials), fmt::join(jobs, ","),
                    shell_line({fmt::format("{}/{}/{}", root, what.trials[0], kSlurmFile)}),
                    shell_line({root}), fmt::join(jobs, " "), fmt::join(jobs, " "));
}

nlohmann::ordered_json submit_json(const std::string& root, const ToSubmit& what,
                                   const std::vector<std::string>& jobs) {
  const std::string all = fmt::format("{}", fmt::join(jobs, ","));
  return {{"study", root},
          {"job", all.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(all)},
          {"trials", what.trials},
          {"repeated", what.again},
          {"under_way", what.under_way}};
}

int preview_submission(const StudySpec& spec, const std::string& directory,
                       const StudySubmitCommand& options) {
  const ToSubmit what = what_is_left(results_to_be(spec, directory), options.retry_failed);
  std::string text;
  nlohmann::ordered_json scripts = nlohmann::ordered_json::array();
  if (!what.trials.empty())
    for (const TrialArray& array : arrays_of(what.trials, most_array_indices())) {
      scripts.push_back(script_of(spec, directory, array, options.batch));
      text += (text.empty() ? "" : "\n") + scripts.back().get<std::string>();
    }
  nlohmann::ordered_json json = submit_json(directory, what, {});
  json["script"] = scripts.empty() ? nlohmann::ordered_json("") : scripts.front();
  if (scripts.size() > 1) json["scripts"] = scripts;  // of several arrays
  print_once(options.json   ? json_line(json)
             : text.empty() ? submit_text(directory, what, {})
                            : text);
  return 0;
}

int submit_study(const StudySubmitCommand& options) {
  require_no_launcher("submit");
  auto [spec, toml, directory] = read_named_study(options);
  if (!method_of(spec.search).independent())
    throw_input("a search cannot be submitted: what it tries next follows from trials that ended",
                options.file, "concertina study run, in one allocation for the whole study");
  set_launcher(options.batch.launcher, spec);
  require_launcher(spec);
  if (options.dry_run) return preview_submission(spec, directory, options);
  require_sbatch();
  script_of(spec, directory, {.trials = {1}},
            options.batch);  // what is wrong is said before any folder
  StudyFolder folder(directory, spec, toml);
  const ToSubmit what = what_is_left(read_study(directory), options.retry_failed);
  const std::vector<std::string> jobs =
      what.trials.empty() ? std::vector<std::string>() : submit(folder, spec, what, options.batch);
  print_once(options.json ? json_line(submit_json(directory, what, jobs))
                          : submit_text(directory, what, jobs));
  return 0;
}

void add_batch_options(CLI::App& app, BatchOptions& batch) {
  app.add_option("--partition", batch.partition, "of the cluster")->type_name("NAME");
  app.add_option("--time", batch.minutes,
                 "minutes of a task; a trial that takes longer commits a checkpoint and goes on in "
                 "the next one")
      ->type_name("MIN")
      ->check(whole_number(1, 1 << 24));
  app.add_option("--nodes", batch.nodes, "of a task")
      ->type_name("N")
      ->check(whole_number(1, 1 << 20));
  app.add_option("--cpus-per-task", batch.cpus_per_task, "cores of a rank")
      ->type_name("C")
      ->check(whole_number(1, 1 << 20));
  app.add_option("--at-once", batch.at_once, "how many trials run at a time at most")
      ->type_name("K")
      ->check(whole_number(1, 1 << 20));
  app.add_option("--sbatch", batch.more, "more options of sbatch: \"--gres=gpu:4 --account=NAME\"")
      ->type_name("OPTIONS");
  add_launcher_option(app, batch.launcher);
}

void add_study_submit_options(CLI::App& app, StudySubmitCommand& options) {
  add_study_file_options(app, options, "submit", "the script; nothing is submitted or written");
  add_batch_options(app, options.batch);
}

}  // namespace

Command command_study_submit() {
  return make_command<StudySubmitCommand>(
      "the same on a cluster: an array job of Slurm, a task for each trial",
      add_study_submit_options, submit_study);
}

}  // namespace concertina
