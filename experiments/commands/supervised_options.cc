#include "experiments/commands/supervised_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/launcher/slurm.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

/// The config that `words`, which are `train` and its arguments, define.
RunConfig config_of(const std::vector<std::string>& words, const std::string& command) {
  const std::string example = fmt::format("concertina {} --ranks 4 -- train @config.toml", command);
  if (words.empty() || words[0] != "train")
    throw_input(
        words.empty() ? "no command to run" : fmt::format("`{}` cannot be supervised", words[0]),
        "concertina " + command, example);
  CLI::App app;
  ConfigOptions options;
  options.app = &app;
  add_config_options(app, options);
  app.add_flag("--from-scratch");
  std::vector<std::string> reversed(words.rbegin(), words.rend() - 1);
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw_input(error.what(), fmt::format("concertina {} -- {}", command, fmt::join(words, " ")),
                "the arguments of `concertina train`, without --dry-run");
  }
  return load(options);
}

/// The number of ranks in the config's layout.
int ranks_of(const RunConfig& config) {
  const ParallelSection& parallel = config.parallel;
  if (!parallel.layout.pipelines.empty()) return rank_count(parallel.layout);
  if (parallel.pp > 0 && parallel.dp > 0) return parallel.pp * parallel.dp;
  throw_input("the number of ranks is unknown", "--ranks",
              "--ranks 4, or set parallel.pp and parallel.dp");
}

}  // namespace

void add_supervised_options(CLI::App& app, SupervisedOptions& options) {
  app.add_option("--ranks", options.ranks, "ranks per launch (default: parallel.pp x parallel.dp)")
      ->check(whole_number(1, 1 << 20));
  app.add_option("--launcher", options.launcher,
                 fmt::format("command that starts the ranks (default: \"{}\"; with hosts: \"{}\")",
                             kDefaultLauncher, kHostsLauncher))
      ->type_name("CMD");
  app.add_option("--hosts", options.hosts,
                 "hosts and their slots, for {hosts} in the launcher; hosts that the ranks do not "
                 "need are spares (default: the nodes of the Slurm job)")
      ->type_name("HOST:SLOTS,...");
  app.add_option("command", options.words, "`train` and its arguments, after --")
      ->type_name("-- train ...");
  add_json_option(app, options);
}

SupervisedTraining supervised_training(const SupervisedOptions& options,
                                       const std::string& command) {
  if (expected_world_size() > 1)
    throw_input(fmt::format("`concertina {}` launches mpirun", command), "command line",
                fmt::format("run concertina {} without mpirun or srun", command));
  SupervisedTraining training{.config = config_of(options.words, command),
                              .launcher = options.launcher,
                              .program = own_program(),
                              .args = options.words};
  training.ranks = options.ranks ? *options.ranks : ranks_of(training.config);
  const bool given = !options.hosts.empty();
  const std::string where = given ? "--hosts" : "the Slurm job";
  if (given)
    training.hosts = parse_hosts(options.hosts, where);
  else if (options.launcher.empty() || options.launcher.find("{hosts}") != std::string::npos)
    training.hosts = slurm_hosts(/*by_mpirun=*/options.launcher.empty());
  if (training.launcher.empty())
    training.launcher = training.hosts.empty() ? kDefaultLauncher : kHostsLauncher;
  require_launcher(training.launcher, "--launcher", hosts_text(training.hosts));
  if (training.hosts.empty()) return training;
  if (const int slots = slots_of(training.hosts); slots < training.ranks)
    throw_input(fmt::format("{} but only {} slots", counted(training.ranks, "rank"), slots), where,
                given ? "more hosts or slots, or fewer --ranks"
                      : "larger sbatch --nodes=N or --ntasks-per-node=M, or fewer --ranks");
  return training;
}

SuperviseSummary run_supervised(const SupervisedTraining& training, bool json) {
  hold_stop_signals();
  const SuperviseSummary summary = supervise(training);
  if (!json && summary.restarts + summary.in_place > 0 && summary.why.empty())
    log::info(
        "finished in {} with {}, which took {}{}; {} trained twice", duration_text(summary.seconds),
        counted(summary.restarts, "restart"), duration_text(summary.down_seconds),
        summary.in_place > 0 ? fmt::format(", and {} without a restart", summary.in_place) : "",
        counted(summary.steps_repeated, "step"));
  if (!summary.why.empty()) log::warn("the run stopped: {}", summary.why);
  return summary;
}

}  // namespace concertina
