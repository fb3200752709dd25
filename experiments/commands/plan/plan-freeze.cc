// `concertina plan freeze`: predicts the effects of freezing, new layouts and the cache on a run.
#include "experiments/commands/plan/plan_options.h"

namespace concertina {
namespace {

struct PlanFreezeOptions : PredictionSource {
  CourseOptions course;
};

int run_plan_freeze(const PlanFreezeOptions& options) {
  CourseOptions course = options.course;
  if (options.config.freeze.policy == "none")
    throw_input("no freeze policy", "freeze.policy", "--policy POLICY, such as pipetransformer");
  course.progress = slow_teller();
  const nlohmann::ordered_json report =
      course_report(options.config, plan_options(options), course);
  print_once(options.json ? json_line(report) : course_text(report));
  return 0;
}

void add_plan_freeze_options(CLI::App& app, PlanFreezeOptions& options) {
  app.add_option_function<std::string>(
         "--policy",
         [&](const std::string& name) { options.sets.push_back("freeze.policy=" + name); },
         "freeze policy (default: the config's freeze.policy)")
      ->type_name("POLICY");
  add_default_option(app, "--epochs", options.course.epochs, "length of the run in epochs")
      ->check(whole_number(1, 10000));
  app.add_option("--samples", options.course.samples, "samples per epoch (default: from data.text)")
      ->check(whole_number(1, std::int64_t{1} << 50));
  add_world_option(app, options.plan.world);
  add_source_options(app, options, /*rates=*/true);
  add_json_option(app, options);
}

}  // namespace

Command command_plan_freeze() {
  return make_command<PlanFreezeOptions>(
      "predict frozen layers, layout and time for each epoch, and the speed-up over a static run "
      "from freezing, new layouts and the cache, with upper bounds",
      add_plan_freeze_options, run_plan_freeze);
}

}  // namespace concertina
