// `concertina study submit`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/commands/command_study.h"
#include "experiments/commands/study_launch.h"
#include "experiments/run/machine.h"
#include "experiments/study/launcher.h"
#include "experiments/study/submission.h"
#include "experiments/study/trial_launch.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

struct StudySubmitCommand {
  std::string file, directory = "studies";
  BatchOptions batch;
  bool retry_failed = false, dry_run = false, json = false;
};

/// What there is to submit, and what waits or runs already.
struct ToSubmit {
  std::vector<int> trials, again, under_way;  // again: of `trials`, those that failed
};

ToSubmit what_is_left(const StudyResults& results, bool retry_failed) {
  const Standing standing = standing_of(results);
  if (!standing.unknown.empty())
    throw_failure(
        fmt::format("it is not known what of this study waits or runs: {}", standing.unknown),
        results.directory, "try again once squeue answers");
  ToSubmit what;
  for (const std::vector<SlurmTask>& tasks : {standing.queued, standing.running})
    for (const SlurmTask& task : tasks) what.under_way.push_back(task.number);
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
  if (fs::exists(directory + "/study.toml")) {
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

std::string script_of(const StudySpec& spec, const std::string& directory,
                      const std::vector<int>& trials, const BatchOptions& options) {
  return batch_script({.name = spec.name,
                       .program = own_program(),
                       .study = fs::absolute(directory).lexically_normal().string(),
                       .directory = fs::current_path().string(),
                       .trials = trials,
                       .ranks = most_ranks(spec, trials)},
                      options);
}

/// Submits what is left; returns the job. The records of trials that are repeated go first, and
/// come back if nothing could be submitted.
std::string submit(StudyFolder& folder, const StudySpec& spec, const ToSubmit& what,
                   const BatchOptions& options) {
  const std::string& root = folder.paths().root;
  const std::string script = root + "/submit.sbatch";
  atomic_replace(script, script_of(spec, root, what.trials, options));
  for (const int number : what.trials) make_directories(folder.paths().trial(number));
  const std::map<int, StoredTrial> before = folder.trials();
  folder.reopen(what.again);
  std::string job;
  try {
    job = submit_batch(script);
  } catch (const Error&) {
    for (const int number : what.again) folder.save(before.at(number));
    throw;
  }
  note_submission(root, job, what.trials);
  return job;
}

std::string submit_text(const std::string& root, const ToSubmit& what, const std::string& job) {
  std::string text;
  if (!what.under_way.empty())
    text += fmt::format("left alone: {}, which {} submitted before and wait or run\n",
                        to_ranges(what.under_way), what.under_way.size() == 1 ? "was" : "were");
  if (job.empty()) return text + fmt::format("nothing is left to submit of {}\n", root);
  return text + fmt::format(
                    "submitted {} of {} as job {}: {}\n"
                    "follow it   squeue --array --jobs {}; tail -f {}\n"
                    "results     concertina study collect {}\n"
                    "pause it    scancel -b -s USR1 {} (checkpoints; each task goes on later)\n"
                    "end it      scancel {}; the same command submits what is left\n",
                    counted(std::ssize(what.trials), "trial"), root, job, to_ranges(what.trials),
                    job, shell_line({fmt::format("{}/{}/slurm.txt", root, what.trials[0])}),
                    shell_line({root}), job, job);
}

nlohmann::ordered_json submit_json(const std::string& root, const ToSubmit& what,
                                   const std::string& job) {
  return {{"study", root},
          {"job", job.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(job)},
          {"trials", what.trials},
          {"repeated", what.again},
          {"under_way", what.under_way}};
}

int preview_submission(const StudySpec& spec, const std::string& directory,
                       const StudySubmitCommand& options) {
  const ToSubmit what = what_is_left(results_to_be(spec, directory), options.retry_failed);
  const std::string script =
      what.trials.empty() ? std::string() : script_of(spec, directory, what.trials, options.batch);
  nlohmann::ordered_json json = submit_json(directory, what, "");
  json["script"] = script;
  print_once(options.json     ? json_line(json)
             : script.empty() ? submit_text(directory, what, "")
                              : script);
  return 0;
}

int submit_study(const StudySubmitCommand& options) {
  require_no_launcher("submit");
  auto [spec, toml, directory] = read_named_study(options.file, options.directory);
  if (spec.search.method != "all")
    throw_input("a search cannot be submitted: what it tries next follows from trials that ended",
                options.file, "concertina study run, in one allocation for the whole study");
  set_launcher(options.batch.launcher, spec);
  require_launcher(spec);
  if (options.dry_run) return preview_submission(spec, directory, options);
  require_sbatch();
  script_of(spec, directory, {1}, options.batch);  // what is wrong is said before any folder
  StudyFolder folder(directory, spec, toml);
  const ToSubmit what = what_is_left(read_study(directory), options.retry_failed);
  const std::string job =
      what.trials.empty() ? std::string() : submit(folder, spec, what, options.batch);
  print_once(options.json ? json_line(submit_json(directory, what, job))
                          : submit_text(directory, what, job));
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

}  // namespace

Runner add_study_submit(CLI::App& app) {
  auto options = std::make_shared<StudySubmitCommand>();
  app.add_option("study", options->file, "the study's file (the user's guide has an example)")
      ->type_name("STUDY.toml")
      ->required();
  app.add_option("--dir", options->directory, "where the study's folder is made")
      ->type_name("DIR")
      ->default_str("studies");
  add_batch_options(app, options->batch);
  app.add_flag("--retry-failed", options->retry_failed,
               "submit trials that failed, or took too long, once more");
  app.add_flag("--dry-run", options->dry_run, "print the script; nothing is submitted or written");
  app.add_flag("--json", options->json, "print the summary as one JSON object, nothing else");
  return [options](MpiEnvironment&) { return submit_study(*options); };
}

}  // namespace concertina
