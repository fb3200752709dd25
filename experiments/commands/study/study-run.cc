// `concertina study run`.
#include "experiments/study/sampler.h"
#include "experiments/study/study_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/commands/command.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/record/progress.h"
#include "experiments/study/trial_launch.h"

namespace concertina {
namespace {

struct StudyRunCommand : StudyFileOptions {
  std::string sampler;
  std::optional<int> jobs;
  std::optional<double> time_limit;
};

/// The study from its file, with the launch options from the command line.
NamedStudy study_of(const StudyRunCommand& options) {
  NamedStudy study = read_named_study(options);
  StudySpec& spec = study.spec;
  if (options.jobs) spec.launch.jobs = *options.jobs;
  if (options.time_limit) spec.launch.time_limit = *options.time_limit;
  const SearchMethod& method = method_of(spec.search);
  if (!options.sampler.empty()) {
    if (!method.proposes())
      throw_input("--sampler requires a search with method \"sampler\"", options.file,
                  "[search] method = \"sampler\" and metric = \"validation_loss\"");
    spec.search.options[std::string(method.program)] = options.sampler;
  }
  if (method.proposes() && option<std::string>(spec.search.options, method.program).empty())
    throw_input("no sampler", options.file,
                "--sampler \"PROGRAM ARGUMENT ...\", or command in [search]");
  return study;
}

/// Prints what `run` would launch: performs the same checks and skips finished trials.
void preview(const StudySpec& spec, const StudyPaths& paths, bool retry_failed) {
  std::map<int, TrialRecord> stored = stored_trials(spec, paths.root);
  const SearchMethod& method = method_of(spec.search);
  const int jobs = spec.launch.jobs;
  std::string text;
  std::vector<int> skipped;
  int left = 0, timed = 0;
  double seconds = 0;  // of skipped trials that recorded a time
  for (const Trial& trial : trials_of(spec)) {
    TrialRecord& before = stored[trial.number];
    const bool failed = before.state == TrialState::failed || before.state == TrialState::timed_out;
    if (before.state == TrialState::open || (failed && retry_failed)) {
      ++left;
      text += fmt::format("{}: {}\n   {}\n", trial.number, settings_text(trial.settings),
                          launch_line(spec, paths, trial, own_program()));
    } else {
      skipped.push_back(trial.number);
      if (const auto found = before.metrics.find("trial_s"); found != before.metrics.end())
        seconds += found->second, ++timed;
    }
  }
  text += method.proposes() ? "the sampler chooses the trials"
                            : fmt::format("{} to run", counted(left, "trial"));
  if (jobs > 1) text += fmt::format(", up to {} at a time", jobs);
  if (method.rungs != nullptr) text += "; the search stops some of them early";
  if (!skipped.empty()) text += fmt::format("; skipped as finished: {}", to_ranges(skipped));
  if (const double mean = seconds / std::max(1, timed); left * mean > 0)
    text += fmt::format("; expected to take {} ({:.3g} s per trial so far)",
                        format_duration(mean * std::ceil(1.0 * left / jobs)), mean);
  print_once(text + "\n");
}

nlohmann::ordered_json summary_json(const StudyFolder& folder, const StudySummary& summary) {
  nlohmann::ordered_json json = {{"study", folder.paths().root},
                                 {"results", folder.paths().results()},
                                 {"done", summary.done},
                                 {"failed", summary.failed},
                                 {"timed_out", summary.timed_out},
                                 {"stopped", summary.stopped},
                                 {"elsewhere", summary.run_by_others.size()},
                                 {"interrupted", summary.interrupted},
                                 {"best", nullptr}};
  if (!summary.incomparable.empty()) json["unlike"] = summary.incomparable;
  if (summary.best) {
    json["best"] = {{"trial", summary.best->number},
                    {"settings", nlohmann::ordered_json::object()}};
    for (const auto& [key, value] : summary.best->settings) json["best"]["settings"][key] = value;
  }
  return json;
}

std::string summary_text(const StudySpec& spec, const StudyFolder& folder,
                         const StudySummary& summary) {
  std::string text = fmt::format("{} done", counted(summary.done, "trial"));
  for (const auto& [count, what] :
       {std::pair(summary.stopped, "stopped"), std::pair(summary.failed, "failed"),
        std::pair(summary.timed_out, "timed out")})
    if (count > 0) text += fmt::format(", {} {}", count, what);
  text += "\n";
  if (summary.best)
    text += fmt::format("best {}: {} in trial {} ({})\n", spec.search.metric,
                        cell_text(cell_of(*summary.best, spec.search.metric)), summary.best->number,
                        settings_text(summary.best->settings));
  if (!summary.incomparable.empty())
    text += fmt::format("no best trial by {}: {}\n", spec.search.metric, summary.incomparable);
  if (!summary.run_by_others.empty()) {
    std::vector<int> numbers;
    for (const auto& [number, who] : summary.run_by_others) numbers.push_back(number);
    text += fmt::format(
        "skipped because other processes run them: {}; afterwards: concertina study collect {}\n",
        to_ranges(numbers), folder.paths().root);
  }
  if (summary.failed + summary.timed_out > 0)
    text += "rerun with --retry-failed to run failed trials again\n";
  if (summary.interrupted) text += stopped_text();
  return text + fmt::format("results: {}\n", folder.paths().results());
}

void reopen_failed(StudyFolder& folder) {
  std::vector<int> failed;
  for (const auto& [number, trial] : folder.trials())
    if (trial.state == TrialState::failed || trial.state == TrialState::timed_out)
      failed.push_back(number);
  folder.reopen(failed);
}

int run_study(const StudyRunCommand& options) {
  require_no_launcher("run");
  options.excludes("--json", "--dry-run", options.dry_run);
  const auto [spec, toml, directory] = study_of(options);
  require_launcher(spec);
  if (options.dry_run) {
    preview(spec, StudyPaths(directory, spec), options.retry_failed);
    return 0;
  }
  hold_study_signals();
  StudyFolder folder(directory, spec, toml);
  if (options.retry_failed) reopen_failed(folder);
  StudyRun run(spec, folder, {.program = own_program(), .cores = one_per_core(allowed_cpus())});
  const StudySummary summary = run.run(stop_signal, wait_for_trials);
  print_once(options.json ? json_line(summary_json(folder, summary))
                          : summary_text(spec, folder, summary));
  if (summary.interrupted) return static_cast<int>(Exit::preempted);
  const bool all = summary.failed + summary.timed_out == 0 && summary.run_by_others.empty();
  return static_cast<int>(all ? Exit::ok : Exit::failure);
}

void add_study_run_options(CLI::App& app, StudyRunCommand& options) {
  add_study_file_options(app, options, "run", "what would be launched, without launching it");
  app.add_option("--jobs", options.jobs,
                 "number of concurrent trials, each on separate cores (default: launch.jobs)")
      ->check(whole_number(1, 1 << 16));
  app.add_option("--time-limit", options.time_limit,
                 "time limit per trial in seconds; 0: none (default: launch.time_limit)")
      ->check(number(0, 1e9));
  app.add_option("--sampler", options.sampler,
                 "program that chooses settings to try (default: search.command)")
      ->type_name("CMD");
}

}  // namespace

Command command_study_run() {
  return make_command<StudyRunCommand>("run all trials of a study, or the remaining trials",
                                       add_study_run_options, run_study);
}

}  // namespace concertina
