// `concertina schedule check`: returns exit code 0 for a valid plan, and 2 for an invalid one, with
// a counter-example and its place in the grid.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/commands/schedule/schedule_options.h"
#include "parallel/plan/plan_grid.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

std::size_t action_count(const Plan& plan) {
  std::size_t count = 0;
  for (const auto& row : plan.rows) count += row.size();
  return count;
}

void print(const RefusedPlan& refused) {
  const Violation& violation = refused.violation();
  Json places = Json::array();
  for (const auto& [rank, position] : violation.places)
    places.push_back({{"rank", rank},
                      {"position", position},
                      {"action", to_text(refused.plan().rows[rank][position])}});
  Json missing;
  if (const auto& gap = violation.gap)
    missing = {{"rank", gap->before.rank},
               {"position", gap->before.position},
               {"action", to_text(gap->action)}};
  const Json report{{"ok", false},
                    {"rule", name_of(violation.rule)},
                    {"why", violation.text},
                    {"places", places},
                    {"missing", missing},
                    {"grid", grid_around(refused.plan(), violation.places, violation.gap)},
                    {"try", advice_of(violation.rule)}};
  fmt::print("{}", json_line(report));
}

struct CheckOptions : ScheduleOptions {
  int activations = 0;  // maximum per rank, in microbatch-stages; 0: unlimited
};

/// Returns the plan if it is valid and within the memory limit.
Plan accepted_plan(const CheckOptions& options) {
  Planned planned = plan_of(options);
  if (options.activations == 0) return std::move(planned.plan);
  Limits limits = limits_of(planned.plan);
  limits.peak_activations.assign(planned.plan.rows.size(), options.activations);
  if (const auto violation = check(planned.plan, planned.layout, limits))
    throw RefusedPlan(planned.plan, *violation, "", options.schedule);
  return std::move(planned.plan);
}

int run_schedule_check(const CheckOptions& options) {
  try {
    const Plan plan = accepted_plan(options);
    const std::size_t ranks = plan.rows.size(), actions = action_count(plan);
    if (options.json)
      fmt::print("{}", json_line({{"ok", true}, {"ranks", ranks}, {"actions", actions}}));
    else
      fmt::print("ok: {}, {}; complete, ordered, free of deadlocks\n", counted(ranks, "rank"),
                 counted(actions, "action"));
    return static_cast<int>(Exit::ok);
  } catch (const RefusedPlan& refused) {
    if (!options.json) throw;
    print(refused);
    return static_cast<int>(Exit::bad_input);
  } catch (const Error& error) {
    if (!options.json || error.code() != Exit::bad_input) throw;
    fmt::print("{}", json_line({{"ok", false},
                                {"rule", nullptr},
                                {"why", error.message()},
                                {"at", error.where()},
                                {"try", error.fix()}}));
    return static_cast<int>(Exit::bad_input);
  }
}

void add_check_options(CLI::App& app, CheckOptions& options) {
  add_schedule_option(app, options);
  add_plan_options(app, options);
  app.add_option("--activations", options.activations,
                 "maximum activations saved on a rank, in microbatch-stages; 0: unlimited")
      ->check(whole_number(0, 1 << 30));
  add_json_option(app, options);
}

}  // namespace

Command command_schedule_check() {
  return make_command<CheckOptions>("prove that a schedule is complete and free of deadlocks",
                                    add_check_options, run_schedule_check);
}

}  // namespace concertina
