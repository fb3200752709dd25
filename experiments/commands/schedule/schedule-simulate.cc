// `concertina schedule simulate`: predicts makespan, bubble, memory and critical path.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/commands/schedule/schedule_options.h"
#include "experiments/predict/report_parts.h"
#include "experiments/predict/schedule_costs.h"
#include "experiments/predict/schedule_search_report.h"
#include "parallel/plan/reduction_tree.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

/// JSON name and text of a Wait.
struct WaitText {
  const char *key, *text;
};
WaitText describe(Wait wait) {
  static constexpr WaitText kTexts[] = {{"none", ""},
                                        {"input", "waited for its input"},
                                        {"gradient", "waited for its gradient"},
                                        {"send_buffer", "waited for a gradient to be sent"},
                                        {"reduction", "waited for gradients from other ranks"},
                                        {"all_ranks", "waited for all ranks"}};
  return kTexts[static_cast<std::size_t>(wait)];
}

/// Prints the critical path. Consecutive actions of a row that waited only for each other share a
/// line; a long path is shortened to its ends.
void print_path(const Plan& plan, const Timeline& timeline) {
  constexpr std::size_t kEnd = 40;  // lines
  constexpr double kNoWait = 1e-9;  // fraction of the makespan; allows for rounding
  std::vector<std::string> lines;
  const std::vector<PathStep>& path = timeline.critical_path;
  for (std::size_t i = 0, next = 0; i < path.size(); i = next) {
    const auto text = [&](const PathStep& step) {
      return to_text(plan.rows[step.rank][step.position]);
    };
    for (next = i + 1; next < path.size() && path[next].wait == Wait::none;) ++next;
    const Interval &first = timeline.rows[path[i].rank][path[i].position],
                   &last = timeline.rows[path[next - 1].rank][path[next - 1].position];
    lines.push_back(fmt::format(
        "rank {:>3}  {:>10g} to {:>10g}  {}{}{}\n", path[i].rank, first.start, last.end,
        text(path[i]), next > i + 1 ? " .. " + text(path[next - 1]) : "",
        path[i].wait == Wait::none || path[i].waited <= kNoWait * timeline.makespan
            ? ""
            : fmt::format("  ({} for {:g})", describe(path[i].wait).text, path[i].waited)));
  }
  fmt::print("\ncritical path\n");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i >= kEnd && i + kEnd < lines.size()) {
      if (i == kEnd) fmt::print("... {} more lines; use --json for all\n", lines.size() - 2 * kEnd);
      continue;
    }
    fmt::print("{}", lines[i]);
  }
}

nlohmann::ordered_json path_json(const Plan& plan, const Timeline& timeline) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const PathStep& step : timeline.critical_path)
    json.push_back({{"rank", step.rank},
                    {"action", to_text(plan.rows[step.rank][step.position])},
                    {"wait", describe(step.wait).key},
                    {"waited", step.waited}});
  return json;
}

/// The actions of each rank in the order of its row, as [action, start, end] in the unit of the
/// costs.
nlohmann::ordered_json timeline_json(const Plan& plan, const Timeline& timeline) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < plan.rows[rank].size(); ++i)
      row.push_back(nlohmann::ordered_json::array(
          {to_text(plan.rows[rank][i]), timeline.rows[rank][i].start, timeline.rows[rank][i].end}));
    ranks.push_back(std::move(row));
  }
  return ranks;
}

/// The idle time from the schedule's closed form, and how it is measured; null if it has none.
nlohmann::ordered_json closed_form(const Planned& planned, const ScheduleOptions& options) {
  if (planned.schedule == nullptr || options.frozen > 0) return nullptr;
  const ClosedForm& form = planned.schedule->bubble;
  const auto claim = form.on(planned.layout, planned.chunks);
  if (!claim) return nullptr;
  return {{"formula", form.text},
          {"measure", "span, with F = I = W and free transfers"},
          {"exact", claim->exact},
          {"idle_over_ideal", claim->value}};
}

nlohmann::ordered_json bubble_json(const Planned& planned, const Timeline& timeline,
                                   const ScheduleOptions& options) {
  const IdleOverIdeal idle = idle_over_ideal(planned.plan, timeline);
  return {{"mean", timeline.mean_bubble},
          {"ranks", timeline.bubble},
          {"idle_over_ideal", {{"step", idle.step}, {"span", idle.span}}},
          {"closed_form", closed_form(planned, options)},
          {"definitions", definitions_json(planned.plan, timeline)}};
}

/// Advice for opposite pipelines with unequal numbers of microbatches; otherwise empty. Leaves
/// of the gradient sum are not split, so one pipeline may get 5 of 9 leaves.
std::string equal_halves_advice(const Layout& replica) {
  const std::vector<Pipeline>& all = replica.pipelines;
  if (all.size() != 2 || all[0].microbatches() == all[1].microbatches()) return "";
  const int m = all[0].microbatches() + all[1].microbatches();
  if (m % 2 != 0) return "";
  return fmt::format(
      "the two pipelines have {} and {} microbatches; --leaves {} (numerics.leaves, which affects "
      "bits) gives each of them {}\n",
      all[0].microbatches(), all[1].microbatches(), default_leaves(m, 2), m / 2);
}

/// Prints three measures of idle time.
void print_bubble(const nlohmann::ordered_json& bubble) {
  const auto percent = [](const nlohmann::ordered_json& share) {
    return fmt::format("{:.2f}%", 100 * share.get<double>());
  };
  const auto& idle = bubble["idle_over_ideal"];
  fmt::print("largest ratio of idle to ideal time on a rank: {} over the step, {} over its span\n",
             percent(idle["step"]), percent(idle["span"]));
  if (const auto& form = bubble["closed_form"]; !form.is_null())
    fmt::print("closed form for the span with F = I = W and free transfers: {} = {}\n",
               form["formula"], percent(form["idle_over_ideal"]));
  fmt::print("bubble as defined in papers:\n");
  for (const auto& [name, one] : bubble["definitions"].items())
    fmt::print("  {:<12}{:>8.4f}  {}; {}\n", name, one["value"], one["formula"], one["source"]);
  fmt::print("\n");
}

void print_timeline(const Timeline& timeline, const nlohmann::ordered_json& bubble) {
  fmt::print("makespan {:g}  bubble {:.2f}% of it (mean over ranks)\n", timeline.makespan,
             100 * timeline.mean_bubble);
  print_bubble(bubble);
  fmt::print("{:<16}{:>10} {:>9} {:>36}\n", "rank", "busy", "bubble",
             "peak activations, microbatch-stages");
  RankLines lines;
  for (std::size_t rank = 0; rank < timeline.busy.size(); ++rank)
    lines.add(static_cast<int>(rank),
              fmt::format("{:>10g} {:>8.2f}% {:>36}", timeline.busy[rank],
                          100 * timeline.bubble[rank], timeline.peak_activations[rank]));
  fmt::print("{}", lines.text());
}

int run_schedule_simulate(const ScheduleOptions& options) {
  const ScheduleCosts costs = costs_of(options);
  const Planned planned = plan_of(options);
  const Costs of_plan = costs.of(planned.layout, planned.plan, 1, planned.leaves);
  const Timeline timeline = simulate(planned.plan, planned.layout, of_plan);
  const nlohmann::ordered_json links = costs.links(planned.layout, of_plan);
  const nlohmann::ordered_json bubble = bubble_json(planned, timeline, options);
  if (!options.json) {
    print_timeline(timeline, bubble);
    fmt::print("{}", equal_halves_advice(planned.layout));
    fmt::print("links: {}\n", links["text"]);
    print_path(planned.plan, timeline);
    return 0;
  }
  nlohmann::ordered_json metrics{
      {"makespan", timeline.makespan},
      {"bubble", bubble},
      {"peak_activations", {{"microbatch_stages", timeline.peak_activations}}},
      {"links", links},
      {"critical_path", path_json(planned.plan, timeline)},
      {"timeline", timeline_json(planned.plan, timeline)}};
  // Bytes and seconds require a model.
  if (costs.measured()) metrics["peak_activations"]["bytes"] = timeline.peak_activation_bytes;
  fmt::print("{}", json_line(metrics));
  return 0;
}

void add_simulate_options(CLI::App& app, ScheduleOptions& options) {
  add_schedule_option(app, options);
  add_plan_options(app, options);
  add_cost_options(app, options);
  add_json_option(app, options);
}

}  // namespace

Command command_schedule_simulate() {
  return make_command<ScheduleOptions>("predict makespan, bubble and memory", add_simulate_options,
                                       run_schedule_simulate);
}

}  // namespace concertina
