#include "experiments/commands/command_plan.h"

#include "core/clock.h"
#include "core/log.h"
#include "experiments/planner/machine_preset.h"
#include "experiments/planner/search_report.h"
#include "experiments/report/course_report.h"
#include "experiments/report/move_report.h"
#include "experiments/report/plan_report.h"
#include "experiments/run/devices.h"

namespace concertina {
namespace {

constexpr int kMostRanks = 1 << 16;

struct Options : CommonOptions {
  PlanOptions plan;
  std::string from, to;
  CourseOptions course;
  bool search = false;
  LayoutSearchOptions layouts;
};

/// Tells what goes on, where it takes long.
std::function<void(const std::string&)> teller() {
  return [told = now()](const std::string& what) mutable {
    constexpr double kSilence = 5;  // seconds
    if (now() < told + kSilence) return;
    told = now();
    log::info("{}", what);
  };
}

void declare_search(CLI::App& app, Options& options) {
  LayoutSearchOptions& layouts = options.layouts;
  app.add_flag("--search", options.search,
               "the fastest layouts that fit: tensor-parallel group x pp x dp x chunks x schedule "
               "x microbatch x recomputation, from formulas and the simulator; the units of the "
               "columns are under the table");
  app.add_option("--machine", layouts.machine,
                 "the machine: a preset (a100-40gb, a100-80gb, h100, h200, laptop) or a machine "
                 "file; without --search the same as --costs")
      ->type_name("NAME|FILE");
  app.add_option("--device-memory", layouts.device_memory,
                 "with --search: memory of one device, with its unit, in place of the machine's")
      ->type_name("SIZE");
  app.add_option("--top", layouts.top, "with --search: layouts to print")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.add_option("--budget", layouts.budget,
                 "with --search: actions of schedules to simulate, all together")
      ->check(number(1, 1e12))
      ->capture_default_str();
  app.add_option("--software", layouts.software,
                 "with --search: whose bytes and overlaps: concertina, megatron, deepspeed")
      ->type_name("NAME")
      ->capture_default_str();
  const auto list = [&](const char* name, auto& values, const char* help) {
    return app.add_option(name, values, std::string("with --search: ") + help)
        ->delimiter(',')
        ->allow_extra_args(false);
  };
  const auto numbers = [&](const char* name, std::vector<int>& values, const char* help) {
    list(name, values, help)->check(whole_number(1, kMostRanks))->type_name("N,...");
  };
  numbers("--tp", layouts.tp, "only these sizes of a tensor-parallel group");
  numbers("--pp", layouts.pp, "only these depths");
  numbers("--microbatch", layouts.microbatch, "only microbatches of so many samples");
  numbers("--chunks", layouts.chunks, "only so many stages per rank");
  list("--schedules", layouts.schedules, "only these schedules")->type_name("NAME,...");
  list("--recompute", layouts.recompute, "only this recomputation: none, selective, full")
      ->type_name("WORD,...");
}

void declare(CLI::App& app, Options& options) {
  declare_search(app, options);
  app.add_option("--world", options.plan.world, "ranks to plan for; none is launched")
      ->check(whole_number(1, kMostRanks))
      ->capture_default_str();
  app.add_option("--rate", options.plan.gflops, "GFLOP/s of one rank, in place of measuring it")
      ->type_name("GFLOPS")
      ->check(number(1e-3, 1e9));
  app.add_option("--costs", options.plan.costs,
                 "what to predict from: the directory of a run, or a machine file (*.toml)")
      ->type_name("RUN|FILE");
  app.add_option("--links", options.plan.links,
                 "what messages take, in place of the links in --costs: a machine file, or a run")
      ->type_name("RUN|FILE");
  app.add_option("--from", options.from,
                 "with --to: what a change of the layout moves, instead of a plan. Keys on top of "
                 "the config, such as \"parallel.pp=4 parallel.dp=1\"; left out: the config's own")
      ->type_name("KEYS");
  app.add_option("--to", options.to, "the layout after the change, as --from")->type_name("KEYS");
  app.add_option(
         "--freeze", options.course.policy,
         "what freezing by this policy gives: frozen layers, layout and time of each epoch, "
         "and the ladder from a static run to all parts, with ceilings")
      ->type_name("POLICY");
  app.add_option("--epochs", options.course.epochs, "with --freeze: epochs of the run")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  app.add_option("--samples", options.course.samples,
                 "with --freeze: samples of an epoch, in place of those of data.text")
      ->check(whole_number(1, std::int64_t{1} << 50));
  add_json_option(app, options);
}

int run_plan(const Options& options, MpiEnvironment&) {
  // MPI never starts: under a launcher, too, one process does it all.
  if (launcher_rank() != 0) return 0;
  if (options.search) {
    LayoutSearchOptions layouts = options.layouts;
    layouts.world = options.plan.world;
    layouts.gflops = options.plan.gflops;
    layouts.progress = teller();
    const nlohmann::ordered_json report = search_report(options.config, layouts);
    print_once(options.json ? json_line(report) : search_text(report));
    return 0;
  }
  if (!options.from.empty() || !options.to.empty()) {
    const nlohmann::ordered_json moves =
        move_report(options.config, options.plan, options.from, options.to);
    print_once(options.json ? json_line(moves) : move_text(moves));
    return 0;
  }
  if (!options.course.policy.empty()) {
    CourseOptions course_options = options.course;
    course_options.progress = teller();
    const nlohmann::ordered_json course =
        course_report(options.config, options.plan, course_options);
    print_once(options.json ? json_line(course) : course_text(course));
    return 0;
  }
  PlanOptions plan = options.plan;
  if (!options.layouts.machine.empty() && plan.costs.empty())
    plan.costs = machine_path(options.layouts.machine);
  const nlohmann::ordered_json report =
      plan_report(options.config, plan, device_memory(options.config));
  print_once(options.json ? json_line(report) : plan_text(report));
  return 0;
}

}  // namespace

Runner add_plan(CLI::App& app) {
  return with_config<Options>(app, declare, run_plan);
}

}  // namespace concertina
