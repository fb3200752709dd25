#include "experiments/command_schedule.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "parallel/passes.h"
#include "parallel/reduction_tree.h"
#include "parallel/simulate.h"

namespace concertina {
namespace {

/// A plan and the layout that it is for.
struct Planned {
  Plan plan;
  Layout layout;
};

bool is_name(const std::string& text) {
  for (const auto& entry : schedules())
    if (entry.name == text) return true;
  return false;
}

/// One replica of ranks x chunks stages, one unit a stage.
Planned generate(const ScheduleOptions& options) {
  const Entry<Schedule>& schedule = find_schedule(options.schedule);
  const Folding folding = folding_of(schedule, options.chunks);
  const int stages = options.ranks * folding.chunks;
  int leaves = default_leaves(options.microbatches);
  if (leaves < folding.pipelines()) leaves = options.microbatches;
  std::vector<UnitRange> units;
  for (int stage = 0; stage < stages; ++stage) units.push_back({stage, stage + 1});
  const Grid grid = fit({.world = options.ranks,
                         .units = stages,
                         .microbatches = options.microbatches,
                         .leaves = leaves},
                        options.ranks, 1, folding);
  Planned result;
  result.layout = make_layout(units, grid, options.microbatches, leaves, folding);
  Limits limits;
  limits.leaf_microbatches = options.microbatches / leaves;
  result.plan = make_plan(result.layout, options.schedule, limits);
  if (options.compute_only) {
    result.plan =
        merge_input_weight(expand(result.layout, schedule.value, schedule.name), result.layout);
  }
  return result;
}

Planned read(const ScheduleOptions& options) {
  if (std::error_code error; !std::filesystem::exists(options.schedule, error)) {
    throw_input(fmt::format("'{}' is neither a schedule nor a file", options.schedule),
                "command line",
                fmt::format("a file, or one of: {}", fmt::join(names_of(schedules()), ", ")));
  }
  std::ifstream file(options.schedule, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || file.bad() || text.str().empty())
    throw_input("cannot read a schedule from this file", options.schedule,
                "a text file with one row of actions a rank");
  Planned result;
  result.plan = parse_plan(text.str(), options.schedule);
  result.layout = infer_layout(result.plan, options.schedule);
  if (const auto violation = check(result.plan, result.layout, limits_of(result.plan)))
    throw_input(violation->text, options.schedule, "a schedule that does all work once, in order");
  return result;
}

/// Checked, wherever it comes from.
Planned plan_of(const ScheduleOptions& options) {
  return is_name(options.schedule) ? generate(options) : read(options);
}

std::size_t action_count(const Plan& plan) {
  std::size_t count = 0;
  for (const auto& row : plan.rows) count += row.size();
  return count;
}

Timeline simulated(const ScheduleOptions& options, const Planned& planned) {
  Costs costs = unit_costs(planned.layout);
  for (StageCosts& stage : costs.stages) {
    stage.forward = options.costs[0];
    stage.input = options.costs[1];
    stage.weight = options.costs[2];
  }
  return simulate(planned.plan, planned.layout, costs);
}

void print_timeline(const Timeline& timeline) {
  fmt::print("makespan {:g}  bubble {:.2f}%\n", timeline.makespan, 100 * timeline.mean_bubble);
  fmt::print("{:>5} {:>10} {:>9} {:>17}\n", "rank", "busy", "bubble", "peak activations");
  for (std::size_t rank = 0; rank < timeline.busy.size(); ++rank)
    fmt::print("{:>5} {:>10g} {:>8.2f}% {:>17}\n", rank, timeline.busy[rank],
               100 * timeline.bubble[rank], timeline.peak_activations[rank]);
}

void declare_common(CLI::App& app, ScheduleOptions& options) {
  app.add_option("schedule", options.schedule,
                 "name (`schedule list`), or file with one row of actions a rank")
      ->type_name("NAME|FILE")
      ->required();
  app.add_option("--ranks", options.ranks, "pipeline ranks; a file's rows say it themselves")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--microbatches", options.microbatches, "microbatches of a step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--chunks", options.chunks, "stages a rank; 0: as many as it wants")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
}

void declare_costs(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--costs", options.costs, "seconds of F, I and W of a microbatch on a stage")
      ->type_name("F,I,W")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::NonNegativeNumber)
      ->default_str("1,1,1");
}

}  // namespace

int run_schedule_list(const ScheduleOptions& options) {
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"schedules", names_of(schedules())}}.dump());
  else
    fmt::print("{}\n", fmt::join(names_of(schedules()), "\n"));
  return 0;
}

int run_schedule_show(const ScheduleOptions& options) {
  fmt::print("{}", to_text(plan_of(options).plan));
  return 0;
}

int run_schedule_check(const ScheduleOptions& options) {
  const Planned planned = plan_of(options);
  const std::size_t ranks = planned.plan.rows.size(), actions = action_count(planned.plan);
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"ok", true}, {"ranks", ranks}, {"actions", actions}}.dump());
  else
    fmt::print("ok: {} ranks, {} actions: complete, ordered, free of deadlock\n", ranks, actions);
  return 0;
}

int run_schedule_simulate(const ScheduleOptions& options) {
  for (const double cost : options.costs)
    if (!std::isfinite(cost))
      throw_input("a cost is not finite", "--costs", "three numbers >= 0, such as 1,1,1");
  const Timeline timeline = simulated(options, plan_of(options));
  if (!options.json) {
    print_timeline(timeline);
    return 0;
  }
  // Bytes need a model: `concertina plan` has them.
  const nlohmann::ordered_json figures{
      {"makespan", timeline.makespan},
      {"bubble", {{"mean", timeline.mean_bubble}, {"ranks", timeline.bubble}}},
      {"peak_activations", {{"microbatch_stages", timeline.peak_activations}}}};
  fmt::print("{}\n", figures.dump());
  return 0;
}

Runner add_schedule(CLI::App& app) {
  using Body = int (*)(const ScheduleOptions&);
  auto options = std::make_shared<ScheduleOptions>();
  auto chosen = std::make_shared<Body>();
  app.require_subcommand(1);
  const auto sub = [&](const char* name, const char* help, Body body) {
    CLI::App* added = app.add_subcommand(name, help);
    // The options and `chosen` live in the runner, which outlives the parsing.
    added->callback([chosen = chosen.get(), body] { *chosen = body; });
    return added;
  };
  CLI::App* list = sub("list", "names of all schedules", run_schedule_list);
  CLI::App* show = sub("show", "one row of actions a rank", run_schedule_show);
  CLI::App* check = sub("check", "prove it complete and free of deadlock", run_schedule_check);
  CLI::App* simulate =
      sub("simulate", "predict makespan, bubble and memory", run_schedule_simulate);
  for (CLI::App* with_plan : {show, check, simulate}) declare_common(*with_plan, *options);
  show->add_flag("--compute-only", options->compute_only, "without transfers and reduction");
  declare_costs(*simulate, *options);
  for (CLI::App* with_json : {list, check, simulate})
    with_json->add_flag("--json", options->json, "print one JSON object, nothing else");
  return
      [options, chosen](MpiEnvironment&) { return launcher_rank() == 0 ? (*chosen)(*options) : 0; };
}

}  // namespace concertina
