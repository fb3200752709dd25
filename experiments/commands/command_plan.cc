#include "experiments/commands/command_plan.h"

#include "core/clock.h"
#include "core/log.h"
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
};

void declare(CLI::App& app, Options& options) {
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
  if (!options.from.empty() || !options.to.empty()) {
    const nlohmann::ordered_json moves =
        move_report(options.config, options.plan, options.from, options.to);
    print_once(options.json ? json_line(moves) : move_text(moves));
    return 0;
  }
  if (!options.course.policy.empty()) {
    CourseOptions course_options = options.course;
    course_options.progress = [told = now()](const std::string& what) mutable {
      constexpr double kSilence = 5;  // seconds
      if (now() < told + kSilence) return;
      told = now();
      log::info("{}", what);
    };
    const nlohmann::ordered_json course =
        course_report(options.config, options.plan, course_options);
    print_once(options.json ? json_line(course) : course_text(course));
    return 0;
  }
  const nlohmann::ordered_json report =
      plan_report(options.config, options.plan, device_memory(options.config));
  print_once(options.json ? json_line(report) : plan_text(report));
  return 0;
}

}  // namespace

Runner add_plan(CLI::App& app) {
  return with_config<Options>(app, declare, run_plan);
}

}  // namespace concertina
