// `concertina plan search`: finds the fastest layouts that fit on a cluster.
#include "experiments/predict/search_report.h"

#include "experiments/commands/plan/plan_options.h"

namespace concertina {
namespace {

struct PlanSearchOptions : ConfigOptions {
  LayoutSearchOptions layouts;
};

int run_plan_search(const PlanSearchOptions& options) {
  LayoutSearchOptions layouts = options.layouts;
  layouts.progress = slow_teller();
  const nlohmann::ordered_json report = search_report(options.config, layouts);
  print_once(options.json ? json_line(report) : search_text(report));
  return 0;
}

void add_plan_search_options(CLI::App& app, PlanSearchOptions& options) {
  LayoutSearchOptions& layouts = options.layouts;
  add_world_option(app, layouts.world);
  app.add_option("--machine", layouts.machine,
                 "preset (a100-40gb, a100-80gb, h100, h200, laptop) or machine file; required")
      ->type_name("NAME|FILE");
  app.add_option("--rate", layouts.gflops, "GFLOP/s of one rank (default: the machine's)")
      ->type_name("GFLOPS")
      ->check(number(1e-3, 1e9));
  app.add_option("--device-memory", layouts.device_memory,
                 "memory of one device, with a unit (default: the machine's)")
      ->type_name("SIZE");
  add_default_option(app, "--top", layouts.top, "number of layouts to print")
      ->check(whole_number(1, 1000));
  add_default_option(app, "--budget", layouts.budget,
                     "maximum number of schedule actions to simulate in total")
      ->check(number(1, 1e12));
  add_default_option(app, "--software", layouts.software,
                     "software to model: concertina, megatron or deepspeed")
      ->type_name("NAME");
  const auto list = [&](const char* name, auto& values, const char* help) {
    return app.add_option(name, values, help)->delimiter(',')->allow_extra_args(false);
  };
  const auto numbers = [&](const char* name, std::vector<int>& values, const char* help) {
    list(name, values, help)->check(whole_number(1, kMostPlannedRanks))->type_name("N,...");
  };
  numbers("--tp", layouts.tp,
          "tensor-parallel group sizes to consider (default: 1; for megatron and deepspeed, all "
          "that fit)");
  numbers("--pp", layouts.pp, "pipeline depths to consider (default: all)");
  numbers("--microbatch", layouts.microbatch,
          "samples per microbatch to consider (default: all divisors of a replica's batch)");
  numbers("--chunks", layouts.chunks, "numbers of stages per rank to consider (default: all)");
  list("--schedules", layouts.schedules,
       "schedules to consider (default: all that the software supports)")
      ->type_name("NAME,...");
  list("--recompute", layouts.recompute,
       "kinds of recomputation to consider: none, selective, full (default: all)")
      ->type_name("WORD,...");
  add_json_option(app, options);
}

}  // namespace

Command command_plan_search() {
  return make_command<PlanSearchOptions>(
      "find the fastest layouts that fit in memory: tensor-parallel size x pp x dp x chunks x "
      "schedule x microbatch x recomputation",
      add_plan_search_options, run_plan_search);
}

}  // namespace concertina
