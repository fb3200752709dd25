// `concertina study submit`: declares the options and creates the study's folder; Python does the
// rest.
#include "core/error.h"
#include "experiments/commands/python_command.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/study/sampler.h"
#include "experiments/study/trial_launch.h"

namespace concertina {
namespace {

struct StudySubmitCommand : StudyFileOptions {
  std::string launcher;
};

nlohmann::ordered_json study_json(const StudySpec& spec, const std::string& folder) {
  nlohmann::ordered_json json = {
      {"name", spec.name}, {"folder", folder}, {"trials", nlohmann::ordered_json::array()}};
  std::map<int, TrialRecord> stored = stored_trials(spec, folder);
  for (const Trial& trial : trials_of(spec))
    json["trials"].push_back(
        {{"trial", trial.number},
         {"state", name_of(stored[trial.number].state)},
         {"ranks", ranks_of(spec, trial.settings, config_of(spec, trial.settings))}});
  return json;
}

int submit_study(const StudySubmitCommand& options) {
  require_no_launcher("submit");
  auto [spec, toml, directory] = read_named_study(options);
  if (!method_of(spec.search).independent())
    throw_input("a search cannot be submitted, because each trial depends on finished trials",
                options.file, "`concertina study run` in one allocation for the whole study");
  set_launcher(options.launcher, spec);
  require_launcher(spec);
  const nlohmann::ordered_json study = study_json(spec, directory);
  if (options.dry_run) return call_python(*options.app, study);
  // Report errors before the folder is created.
  if (const int code = call_python(*options.app, study, {{"check", "true"}}); code != 0)
    return code;
  const StudyFolder folder(directory, spec, toml);
  return call_python(*options.app, study);
}

void add_study_submit_options(CLI::App& app, StudySubmitCommand& options) {
  add_study_file_options(app, options, "submit", "the script, without submitting or writing it");
  add_text_option(app, "--partition", "NAME", "partition of the cluster (default: Slurm's)");
  add_text_option(
      app, "--time", "MIN",
      "minutes per task; a longer trial writes a checkpoint and resumes in the next task "
      "(default: the partition's)")
      ->check(whole_number(1, 1 << 24));
  add_text_option(app, "--nodes", "N", "number of nodes per task (default: chosen by Slurm)")
      ->check(whole_number(1, 1 << 20));
  add_text_option(app, "--cpus-per-task", "C", "cores per rank (default: Slurm's)")
      ->check(whole_number(1, 1 << 20));
  add_text_option(app, "--at-once", "K", "maximum number of concurrent trials (default: unlimited)")
      ->check(whole_number(1, 1 << 20));
  add_text_option(app, "--sbatch", "OPTIONS",
                  "additional options for sbatch: \"--gres=gpu:4 --account=NAME\"");
  add_launcher_option(app, options.launcher);
}

}  // namespace

Command command_study_submit() {
  return make_command<StudySubmitCommand>(
      "run a study as a Slurm array job with one task per trial", add_study_submit_options,
      submit_study);
}

}  // namespace concertina
