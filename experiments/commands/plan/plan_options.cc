#include "experiments/commands/plan/plan_options.h"

#include <filesystem>

#include "core/clock.h"
#include "core/log.h"
#include "experiments/predict/machine_file.h"

namespace concertina {

void add_world_option(CLI::App& app, int& world) {
  add_default_option(app, "--world", world, "number of ranks to plan for, without launching them")
      ->check(whole_number(1, kMostPlannedRanks));
}

void add_source_options(CLI::App& app, PredictionSource& options, bool rates) {
  if (rates)
    app.add_option("--rate", options.plan.gflops, "GFLOP/s of one rank (default: measured)")
        ->type_name("GFLOPS")
        ->check(number(1e-3, 1e9));
  app.add_option("--costs", options.plan.costs,
                 "source of costs: a run directory or a machine file (*.toml)")
      ->type_name("RUN|FILE");
  app.add_option("--machine", options.machine,
                 "machine instead of --costs: a preset (a100-40gb, a100-80gb, h100, h200, laptop) "
                 "or a machine file")
      ->type_name("NAME|FILE");
  app.add_option("--links", options.plan.links,
                 "source of link speeds: a machine file or a run (default: --costs)")
      ->type_name("RUN|FILE");
}

PlanOptions plan_options(const PredictionSource& options) {
  PlanOptions plan = options.plan;
  options.excludes("--costs", "--machine", options.given("--machine"));
  const bool measured =
      !plan.costs.empty() && std::filesystem::path(plan.costs).extension() != ".toml";
  if (measured && plan.gflops > 0) options.excludes("--rate", "the costs of a run", true);
  if (!options.machine.empty()) plan.costs = machine_path(options.machine);
  return plan;
}

std::function<void(const std::string&)> slow_teller() {
  return [last_report = now()](const std::string& what) mutable {
    constexpr double kSilence = 5;  // seconds
    if (now() < last_report + kSilence) return;
    last_report = now();
    log::info("{}", what);
  };
}

}  // namespace concertina
