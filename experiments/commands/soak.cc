// `concertina soak`.
#include "experiments/soak/soak.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "core/error.h"
#include "experiments/commands/command.h"
#include "experiments/commands/supervised_options.h"
#include "experiments/machine/program.h"
#include "experiments/machine/signals.h"
#include "experiments/soak/fault_kinds.h"

namespace concertina {
namespace {

struct SoakCommand : SupervisedOptions {
  SoakOptions soak;
};

nlohmann::ordered_json spread_json(const Spread& spread) {
  return {{"p50", spread.p50}, {"p99", spread.p99}, {"max", spread.most}};
}

nlohmann::ordered_json result_json(const SoakResult& result) {
  std::vector<double> seen, recovered;
  for (const SoakFault& fault : result.faults) {
    seen.push_back(fault.seen - fault.at);
    recovered.push_back(fault.recovered - fault.at);
  }
  return {{"passed", result.passed()},
          {"faults", result.faults.size()},
          {"recovered", spread_of(recovered).count},
          {"restarts", result.repeated.size()},
          {"seen_s", spread_json(spread_of(seen))},
          {"recovered_s", spread_json(spread_of(recovered))},
          {"steps_repeated", spread_json(spread_of(result.repeated))},
          {"useful", result.useful(result.disturbed)},
          {"useful_without_faults", result.useful(result.clean)},
          {"seconds", result.disturbed.seconds},
          {"state_sha256", result.disturbed.hash},
          {"state_sha256_without_faults", result.clean.hash},
          {"why", result.why}};
}

/// Whether there is what makes faults of this kind.
bool can_make(const FaultKind& kind, const SoakOptions& options) {
  switch (kind.maker) {
    case FaultMaker::soak:
      return true;
    case FaultMaker::hosts:
      return !options.host_faults.empty() && options.hosts.find(',') != std::string::npos;
    case FaultMaker::disk:
      return !options.disk_faults.empty();
  }
  return false;
}

void choose_kinds(SoakOptions& options) {
  if (options.kinds.empty())
    for (const auto& [name, kind] : fault_kinds())
      if (can_make(kind, options)) options.kinds.emplace_back(name);
  for (const std::string& name : options.kinds) {
    const FaultKind& kind = lookup_entry(fault_kinds(), name, "fault", "--faults").value;
    if (can_make(kind, options)) continue;
    const bool of_disk = kind.maker == FaultMaker::disk;
    throw_input(fmt::format("'{}' needs {}a program that makes it", name,
                            of_disk ? "" : "several hosts, and "),
                "--faults", of_disk ? "--disk-faults CMD" : "--hosts a:2,b:2 --host-faults CMD");
  }
}

int run_soak(const SoakCommand& options) {
  const SupervisedTraining training = supervised_training(options, "soak");
  SoakOptions soak_options = options.soak;
  soak_options.program = own_program();
  soak_options.launcher = training.launcher;
  soak_options.hosts = hosts_text(training.hosts);
  soak_options.args = options.words;
  soak_options.ranks = training.ranks;
  if (soak_options.directory.empty()) soak_options.directory = "soaks/" + training.config.run.name;
  if (!training.config.checkpoint.dir.empty())
    soak_options.checkpoints =
        std::filesystem::absolute(training.config.checkpoint.dir).lexically_normal().string();
  // As the supervisor names the run, whose processes are found by that name.
  soak_options.directory =
      std::filesystem::absolute(soak_options.directory).lexically_normal().string();
  choose_kinds(soak_options);
  hold_stop_signals();
  const SoakResult result = soak(soak_options);
  print_once(options.json ? json_line(result_json(result)) : soak_text(soak_options, result));
  return static_cast<int>(result.passed() ? Exit::ok : Exit::failure);
}

void add_soak_options(CLI::App& app, SoakCommand& options) {
  std::string kinds;
  for (const auto& [name, kind] : fault_kinds())
    kinds += fmt::format("{}{} ({})", kinds.empty() ? "" : ", ", name, kind.help);
  app.add_option("--faults", options.soak.kinds, "all if not given: " + kinds)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("KIND,...");
  app.add_option("--mean", options.soak.mean, "seconds from one fault to the next, in the mean")
      ->check(number(0.01, 1e6))
      ->capture_default_str();
  app.add_option("--for", options.soak.seconds, "seconds in which faults are made")
      ->check(number(0, 1e7))
      ->capture_default_str();
  app.add_option("--at-most", options.soak.most, "faults; any number if not given")
      ->check(whole_number(0, 1 << 30));
  app.add_option("--seed", options.soak.seed, "of the kinds and times of faults")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  app.add_option("--out", options.soak.directory,
                 "a new folder for both runs and the page; soaks/<run.name> if not given")
      ->type_name("DIR");
  app.add_option("--host-faults", options.soak.host_faults,
                 "what does cut, mend, power-off, slow or fast to the HOST that is its last word")
      ->type_name("CMD");
  app.add_option("--disk-faults", options.soak.disk_faults,
                 "what does full, free, slow or fast to the disk that checkpoint.dir is on")
      ->type_name("CMD");
  add_supervised_options(app, options);
}

}  // namespace

Command command_soak() {
  return make_command<SoakCommand>(
      "faults at random times in a run of yours, and what came of each", add_soak_options,
      run_soak);
}

}  // namespace concertina
