// `concertina schedule check`: exit code 0 for a plan that is accepted, 2 for one that is refused,
// with the counter-example and the place in the grid.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/command_schedule.h"
#include "parallel/plan_grid.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

std::size_t action_count(const Plan& plan) {
  std::size_t count = 0;
  for (const auto& row : plan.rows) count += row.size();
  return count;
}

int accept(const Plan& plan, bool json) {
  const std::size_t ranks = plan.rows.size(), actions = action_count(plan);
  if (json)
    fmt::print("{}\n", Json{{"ok", true}, {"ranks", ranks}, {"actions", actions}}.dump());
  else
    fmt::print("ok: {} ranks, {} actions: complete, ordered, free of deadlock\n", ranks, actions);
  return static_cast<int>(Exit::ok);
}

int refuse(const Plan& plan, const Violation& violation, const ScheduleOptions& options) {
  if (!options.json)
    throw_input(explain(plan, violation), options.schedule,
                "a schedule that does all work once, in an order in which nothing waits for ever");
  Json places = Json::array();
  for (const auto& [rank, position] : violation.places)
    places.push_back(
        {{"rank", rank}, {"position", position}, {"action", to_text(plan.rows[rank][position])}});
  const Json report{{"ok", false},
                    {"rule", name_of(violation.rule)},
                    {"why", violation.text},
                    {"places", places},
                    {"grid", grid_around(plan, violation.places)}};
  fmt::print("{}\n", report.dump());
  return static_cast<int>(Exit::bad_input);
}

}  // namespace

int run_schedule_check(const ScheduleOptions& options) {
  Planned planned = read_or_make_plan(options);
  if (options.activations > 0)
    planned.limits.peak_activations.assign(planned.plan.rows.size(), options.activations);
  const auto violation = check(planned.plan, planned.layout, planned.limits);
  return violation ? refuse(planned.plan, *violation, options) : accept(planned.plan, options.json);
}

}  // namespace concertina
