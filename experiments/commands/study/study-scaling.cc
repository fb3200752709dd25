// `concertina study scaling`.
#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "experiments/commands/command.h"
#include "experiments/commands/python_command.h"
#include "experiments/commands/study/study_options.h"
#include "experiments/launcher/hosts.h"
#include "experiments/machine/threads.h"
#include "experiments/study/scaling.h"
#include "experiments/study/study_run.h"
#include "experiments/study/trial_launch.h"

namespace concertina {
namespace {

struct ScalingCommand : ConfigOptions {
  std::string ranks = "1,2,4", mode = "strong", grow = "dp", microbatches, directory = "studies",
              hosts;
  std::optional<int> measure;
  ScalingOptions scaling;
};

std::vector<int> ascending(const std::string& text, const std::string& option) {
  std::vector<int> values;
  for (const std::string& word : CLI::detail::split(text, ',')) {
    std::string value = word;
    if (const std::string wrong = whole_number(1, 1 << 20)(value); !wrong.empty())
      throw_input(wrong, option, option + " 1,2,4");
    values.push_back(std::stoi(value));
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// The hosts in --hosts, which must have equal numbers of ranks; empty without the option.
std::vector<Host> equal_hosts(const std::string& text) {
  if (text.empty()) return {};
  const std::vector<Host> hosts = parse_hosts(text, "--hosts");
  if (std::ranges::adjacent_find(hosts, std::not_equal_to(), &Host::slots) != hosts.end())
    throw_input("the hosts have different numbers of ranks", "--hosts",
                "the same number of ranks on each host: h1:2,h2:2");
  return hosts;
}

/// The default number of threads per rank. It is the same for all measured numbers of ranks, so
/// that the speed-up is not reduced because each of more ranks has fewer threads.
int equal_threads(const ScalingOptions& scaling) {
  int most = scaling.ranks.front();
  for (const int ranks : scaling.ranks)
    if (ranks <= scaling.measured) most = ranks;
  if (scaling.ranks_per_host > 0) most = std::min(most, scaling.ranks_per_host);
  return threads_of(0, std::vector<RankCores>(static_cast<std::size_t>(most), own_cores()), 0);
}

/// Sets defaults for omitted options.
void complete(ScalingCommand& options) {
  ScalingOptions& scaling = options.scaling;
  scaling.ranks = ascending(options.ranks, "--ranks");
  if (!options.microbatches.empty())
    scaling.microbatches = ascending(options.microbatches, "--microbatches");
  scaling.weak = options.mode == "weak";
  scaling.grows_pipeline = options.grow == "pp";
  const std::vector<Host> hosts = equal_hosts(options.hosts);
  scaling.ranks_per_host = hosts.empty() ? 0 : hosts[0].slots;
  const auto cores = static_cast<int>(one_per_core(allowed_cpus()).size());
  scaling.measured = options.measure.value_or(hosts.empty() ? cores : slots_of(hosts));
  scaling.measured = std::max(scaling.measured, scaling.ranks.front());
  int& threads = options.config.run.threads;
  if (threads == 0) threads = equal_threads(scaling);
  scaling.threads = threads;
  scaling.cores = std::max(1, cores / threads);
  if (!options.hosts.empty() && scaling.launch.command.empty())
    scaling.launch.command = fmt::format(
        "mpirun --host {} --map-by slot -n {{ranks}} {{program}} {{args}}", options.hosts);
}

/// The numbers of the trials that measured each point, by round.
std::vector<std::vector<int>> trials_by_point(const ScalingCommand& options) {
  const std::vector<ScalingPoint> points = scaling_points(options.config, options.scaling);
  std::vector<std::vector<int>> trials(points.size());
  int number = 0;
  for (int round = 0; round < options.scaling.rounds; ++round)
    for (std::size_t i = 0; i < points.size(); ++i)
      if (points[i].ranks <= options.scaling.measured) trials[i].push_back(++number);
  return trials;
}

/// The predictions, and which trials measured them, for Python.
nlohmann::ordered_json report_of(const ScalingCommand& options, const StudyPaths& paths) {
  const ScalingOptions& scaling = options.scaling;
  const std::vector<std::vector<int>> trials = trials_by_point(options);
  std::vector<std::vector<std::string>> runs(trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i)
    for (const int number : trials[i]) runs[i].push_back(paths.run(number));
  nlohmann::ordered_json points = scaling_predictions(options.config, scaling, runs);
  for (std::size_t i = 0; i < trials.size(); ++i) points[i]["trials"] = trials[i];
  return {{"mode", options.mode},     {"threads", scaling.threads},
          {"cores", scaling.cores},   {"measured_up_to", scaling.measured},
          {"rounds", scaling.rounds}, {"points", points}};
}

int run_scaling(const ScalingCommand& given) {
  ScalingCommand options = given;
  complete(options);
  require_layouts(options.config, options.scaling);
  const std::string toml = scaling_toml(options.config, options.scaling);
  const std::string root =
      (std::filesystem::path(options.directory) / options.scaling.name).string();
  StudySpec spec =
      read_study_spec(toml, "scaling", [](std::size_t, const std::string& base) { return base; });
  spec.launch = options.scaling.launch;
  require_launcher(spec);
  hold_study_signals();
  StudyFolder folder(root, spec, toml);
  StudyRun run(spec, folder, {.program = own_program(), .cores = one_per_core(allowed_cpus())});
  const StudySummary summary = run.run(stop_signal, wait_for_trials);
  if (summary.interrupted) {
    print_once(stopped_text());
    return static_cast<int>(Exit::preempted);
  }
  if (const int code =
          call_python(*options.app, report_of(options, folder.paths()), {{"folder", root}});
      code != 0)
    return code;
  return static_cast<int>(summary.failed + summary.timed_out > 0 ? Exit::failure : Exit::ok);
}

void declare_scaling(CLI::App& app, ScalingCommand& options) {
  ScalingOptions& scaling = options.scaling;
  add_default_option(app, "--ranks", options.ranks, "numbers of ranks, separated by commas")
      ->type_name("N,N,...");
  add_default_option(app, "--mode", options.mode,
                     "strong (constant batch) or weak (batch proportional to ranks) scaling")
      ->check(CLI::IsMember({"strong", "weak"}));
  add_default_option(app, "--grow", options.grow,
                     "what grows with the ranks: replicas (dp) or the pipeline (pp)")
      ->check(CLI::IsMember({"dp", "pp"}));
  app.add_option("--measure", options.measure,
                 "maximum number of ranks to launch; larger numbers are predicted (default: number "
                 "of cores, or slots in --hosts)")
      ->check(whole_number(1, 1 << 16));
  add_default_option(app, "--rounds", scaling.rounds,
                     "launches per number of ranks, interleaved; their median is used")
      ->check(whole_number(1, 1000));
  app.add_option("--microbatches", options.microbatches,
                 "additional numbers of microbatches to measure, for the fit t = a + b m")
      ->type_name("M,M,...");
  app.add_option("--hosts", options.hosts,
                 "hosts for mpirun, and their numbers of ranks, which must be equal")
      ->type_name("HOST:RANKS,...");
  app.add_option("--launcher", scaling.launch.command,
                 "launch command, with {ranks}, {program} and {args}")
      ->type_name("CMD");
  add_default_option(app, "--time-limit", scaling.launch.time_limit,
                     "time limit per launch in seconds; 0: none")
      ->check(number(0, 1e9));
  app.add_option("--links", scaling.links,
                 "link speeds for predictions: a machine file or a run (default: measured)")
      ->type_name("FILE|RUN");
  add_default_option(app, "--name", scaling.name, "name of the study's folder");
  add_studies_directory(app, options.directory);
  add_json_option(app, options);
}

}  // namespace

Command command_study_scaling() {
  return make_command<ScalingCommand>(
      "measure a config with several numbers of ranks, and predict larger numbers", declare_scaling,
      run_scaling);
}

}  // namespace concertina
