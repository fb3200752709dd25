#include "experiments/commands/study_options.h"
#include "experiments/config/config_environment.h"

#include <fmt/format.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/results/study_course.h"
#include "experiments/study/run_set.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostStudyBytes = 16 << 20;

sigset_t child_signal() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return child;
}

}  // namespace

void add_group_options(CLI::App& app, GroupOptions& options) {
  add_study_folders(app, options.folders);
  const auto list = [&](const char* name, std::vector<std::string>& values, const char* help) {
    return app.add_option(name, values, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--metric", options.table.metrics,
       "columns to average, each with :min or :max where it does not know which is better; the "
       "study's metric, loss, tokens_per_s, median_step_ms, bubble and peak_bytes if not given")
      ->type_name("COLUMN,...");
  list("--by", options.table.by, "columns that make groups; all axes but run.seed if not given")
      ->type_name("COLUMN,...");
  list("--baseline", options.table.baseline,
       "the groups that others are compared with, each with the one that has its other values; "
       "none: no comparison; the first group, where groups have several trials, if not given")
      ->type_name("COLUMN=VALUE,...");
  app.add_option("--pair", options.table.pair, "trials with the same value there are compared")
      ->type_name("COLUMN")
      ->capture_default_str();
  app.add_option("--test", options.test, "of pairs: t (paired t test) or wilcoxon (signed rank)")
      ->check(CLI::IsMember({"t", "wilcoxon"}))
      ->capture_default_str();
  app.add_option("--correction", options.correction,
                 "of the p values of one metric for their number: holm or none")
      ->capture_default_str();
  app.add_option("--confidence", options.table.confidence,
                 "of intervals; p below 1 minus it is marked")
      ->check(number(0, 1))
      ->capture_default_str();
  app.add_option("--equivalent", options.equivalent,
                 "tests whether groups are within this margin of the baseline, in the metric's own "
                 "unit; that of the study's file if not given")
      ->type_name("METRIC=MARGIN");
  app.add_option("--alpha", options.alpha, "of --equivalent; 0.05 if not given")
      ->check(number(kLeastAlpha, kMostAlpha));
  app.add_option("--to", options.targets,
                 "a column of the training seconds until a held-out metric is as good as a number, "
                 "or as the baseline's last one (baseline-0.005: a little less is enough); may be "
                 "repeated")
      ->type_name("METRIC=NUMBER|baseline")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--where", options.table.where,
                 "only trials with this value; may be repeated: any value of one column, all "
                 "columns")
      ->type_name("COLUMN=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--sort", options.table.sort,
                 "by a metric, best first, or by a column of the groups")
      ->type_name("COLUMN");
  app.add_flag("--stopped", options.stopped, kStoppedHelp);
  app.add_flag("--no-notes", options.no_notes, "the table alone");
  app.add_flag("--mixed", options.table.mixed,
               "average trials of different programs or processors all the same");
}

void add_launcher_option(CLI::App& app, std::string& launcher) {
  app.add_option("--launcher", launcher,
                 "mpirun (default) or srun, where the study's [launch] has no command")
      ->type_name("NAME");
}

TableOptions table_options(const GroupOptions& options) {
  TableOptions table = options.table;
  table.notes = !options.no_notes;
  if (options.test == "wilcoxon") table.test_of_pairs = SignificanceTest::wilcoxon;
  table.correction = p_correction(options.correction);
  options.needs("--alpha", "--equivalent", !options.equivalent.empty());
  if (options.equivalent.empty()) return table;
  table.claim = claim_of(options.equivalent, "--equivalent");
  table.claim->alpha = options.alpha.value_or(table.claim->alpha);
  return table;
}

StudyResults read_group_study(const GroupOptions& options, TableOptions& table) {
  return with_targets(read_study_or_runs(options.folders), options, table);
}

StudyResults with_targets(StudyResults results, const GroupOptions& options, TableOptions& table) {
  if (options.stopped) include_stopped(results);
  if (results.loose && table.by.empty()) table.by = {kRunColumn};
  std::vector<std::string> baseline = table.baseline;
  if (baseline.empty() && results.claim) baseline = results.claim->baseline;
  if (baseline == std::vector<std::string>{"none"}) baseline.clear();
  const std::vector<std::string> columns = add_times_to(results, options.targets, baseline);
  if (table.metrics.empty() && !columns.empty())
    for (const MetricColumn& metric : default_metrics(results))
      table.metrics.push_back(metric.name);
  table.metrics.insert(table.metrics.end(), columns.begin(), columns.end());
  return results;
}

EquivalenceClaim claim_of(const std::string& text, const char* option) {
  const std::size_t equals = text.find('=');
  const Cell cell = cell_of_setting(equals == text.npos ? "" : text.substr(equals + 1));
  const auto* margin = std::get_if<double>(&cell);
  if (equals == 0 || margin == nullptr || !(*margin > 0 && *margin <= kMostMargin))
    throw_input(fmt::format("'{}' is not METRIC=MARGIN", text), option,
                fmt::format("{} validation_accuracy=0.005", option));
  return {.metric = text.substr(0, equals), .margin = *margin};
}

namespace {

/// The text that the study's copy of its file has after the file's. Sorted: their order says
/// nothing.
std::string overrides_text(const std::vector<std::string>& sets) {
  std::map<std::string, std::string> lines;
  for (const std::string& set : sets) {
    RunConfig scratch;
    set_config(set, scratch);
    const std::string key = set.substr(0, set.find('='));
    lines[key] = value_text(*find_key(key), scratch);
  }
  std::string text = lines.empty() ? "" : "\n# from the command line\n[override]\n";
  for (const auto& [key, value] : lines) text += fmt::format("{} = {}\n", key, value);
  return text;
}

}  // namespace

void add_study_folder(CLI::App& app, std::string& directory) {
  app.add_option("study", directory, "the study's folder, such as studies/NAME")
      ->type_name("STUDY")
      ->required();
}

void add_study_folders(CLI::App& app, std::vector<std::string>& folders) {
  app.add_option("study", folders,
                 "the study's folder, such as studies/NAME; or directories of runs, of any program")
      ->type_name("STUDY|RUN...")
      ->required();
}

void add_studies_directory(CLI::App& app, std::string& directory) {
  app.add_option("--dir", directory, "where the study's folder is made")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_study_file_options(CLI::App& app, StudyFileOptions& options, const std::string& does,
                            const std::string& shows) {
  app.add_option(
         "study", options.file,
         "the study's file (studies.md of the guide has more), or the folder of one that began")
      ->type_name("STUDY.toml|FOLDER")
      ->required();
  app.add_option("--set,sets", options.sets,
                 "config keys of all trials, in place of those of [set]")
      ->type_name("TABLE.KEY=VALUE");
  add_studies_directory(app, options.directory);
  app.add_flag("--retry-failed", options.retry_failed,
               does + " trials that failed, or took too long, once more");
  app.add_flag("--dry-run", options.dry_run, "print " + shows);
  add_json_option(app, options);
}

NamedStudy read_named_study(const StudyFileOptions& options) {
  const bool began = std::filesystem::is_directory(options.file);
  options.excludes("--dir", "the folder of a study", began);
  NamedStudy study;
  if (began) {
    if (!options.sets.empty())
      throw_input("the keys of a study that has begun stay as they are", options.sets.front(),
                  "the study's file with these keys, and another --dir or `name`");
    study.spec = read_study_folder_spec(options.file);
    study.toml = read_file(StudyPaths(options.file, study.spec).study(), kMostStudyBytes);
    study.folder = options.file;
    return study;
  }
  study.spec = read_study_file(options.file, study.toml, overrides_text(options.sets));
  const std::string& name = study.spec.name;
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw_input(fmt::format("'{}' is no name of a folder", name), options.file, "name = \"NAME\"");
  study.folder = (std::filesystem::path(options.directory) / name).string();
  if (std::filesystem::exists(study.folder + "/" + kStudyFile)) {
    study.spec = grown_from(read_study_folder_spec(study.folder), std::move(study.spec));
    study.toml += grown_text(study.spec);
  }
  return study;
}

void require_no_launcher(const std::string& command) {
  if (expected_world_size() > 1)
    throw_input(
        "a study launches its trials itself", "command line",
        fmt::format("concertina study {} without mpirun or srun; [launch] has their launcher",
                    command));
  // Its trials would have these keys, whatever their own files say.
  if (const Variables variables = environment_variables(); !variables.empty())
    throw_input("the keys of a study's trials are those of its file",
                "environment variable " + variables[0].first,
                fmt::format("unset {}, and the key in the study's file", variables[0].first));
}

void hold_study_signals() {
  hold_stop_signals();
  const sigset_t child = child_signal();
  sigprocmask(SIG_BLOCK, &child, nullptr);
}

void wait_for_trials() {
  const sigset_t child = child_signal();
  const timespec soon{.tv_sec = 0, .tv_nsec = 100'000'000};
  sigtimedwait(&child, nullptr, &soon);
}

}  // namespace concertina
