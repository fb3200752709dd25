#include "experiments/commands/command_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/commands/schedule_search.h"
#include "experiments/config/schedule_file.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/reduction_tree.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

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

/// What `train` would run.
Planned read(const ScheduleOptions& options) {
  if (std::error_code error; !std::filesystem::exists(options.schedule, error)) {
    throw_input(fmt::format("'{}' is neither a schedule nor a file", options.schedule),
                "command line",
                fmt::format("a file, or one of: {}", fmt::join(names_of(schedules()), ", ")));
  }
  ScheduleFile file = read_schedule_file(options.schedule);
  int microbatches = 0;
  for (const Pipeline& pipeline : file.layout.pipelines)
    microbatches = std::max(microbatches, pipeline.last_microbatch);
  Limits limits;
  limits.leaf_microbatches = microbatches / default_leaves(microbatches);
  Planned result{complete(std::move(file.plan), file.layout, options.schedule, limits),
                 std::move(file.layout)};
  for (auto& row : result.plan.rows)
    if (options.compute_only)
      std::erase_if(row, [](const Action& action) { return !is_compute(action.kind); });
  return result;
}

const char* describe(Wait wait) {
  switch (wait) {
    case Wait::none:
      return "";
    case Wait::input:
      return "waited for its input";
    case Wait::gradient:
      return "waited for its gradient";
    case Wait::send_buffer:
      return "waited for a gradient to leave";
    case Wait::reduction:
      return "waited for gradients of other ranks";
    case Wait::all_ranks:
      return "waited for all ranks";
  }
  return "";
}

/// The critical path, runs of actions that waited for nothing but their row as one line.
void print_path(const Plan& plan, const Timeline& timeline) {
  fmt::print("\ncritical path\n");
  const std::vector<PathStep>& path = timeline.critical_path;
  for (std::size_t i = 0, next = 0; i < path.size(); i = next) {
    const auto text = [&](const PathStep& step) {
      return to_text(plan.rows[step.rank][step.position]);
    };
    for (next = i + 1; next < path.size() && path[next].wait == Wait::none;) ++next;
    const Interval &first = timeline.rows[path[i].rank][path[i].position],
                   &last = timeline.rows[path[next - 1].rank][path[next - 1].position];
    fmt::print("rank {:>3}  {:>10g} to {:>10g}  {}{}{}\n", path[i].rank, first.start, last.end,
               text(path[i]), next > i + 1 ? " .. " + text(path[next - 1]) : "",
               path[i].wait == Wait::none
                   ? ""
                   : fmt::format("  ({} for {:g})", describe(path[i].wait), path[i].waited));
  }
}

nlohmann::ordered_json path_json(const Plan& plan, const Timeline& timeline) {
  static const char* const kNames[] = {"none",        "input",     "gradient",
                                       "send_buffer", "reduction", "all_ranks"};
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const PathStep& step : timeline.critical_path)
    json.push_back({{"rank", step.rank},
                    {"action", to_text(plan.rows[step.rank][step.position])},
                    {"wait", kNames[static_cast<int>(step.wait)]},
                    {"waited", step.waited}});
  return json;
}

void print_timeline(const Timeline& timeline) {
  fmt::print("makespan {:g}  bubble {:.2f}%\n", timeline.makespan, 100 * timeline.mean_bubble);
  fmt::print("{:>5} {:>10} {:>9} {:>17}\n", "rank", "busy", "bubble", "peak activations");
  for (std::size_t rank = 0; rank < timeline.busy.size(); ++rank)
    fmt::print("{:>5} {:>10g} {:>8.2f}% {:>17}\n", rank, timeline.busy[rank],
               100 * timeline.bubble[rank], timeline.peak_activations[rank]);
}

nlohmann::ordered_json list_json() {
  nlohmann::ordered_json entries;
  for (const auto& [name, schedule] : schedules())
    entries[std::string(name)] = {{"about", schedule.about},
                                  {"layout", describe(schedule)},
                                  {"chunks", schedule.chunks.usual},
                                  {"bubble", schedule.bubble.text},
                                  {"peak_microbatch_stages", schedule.peak.text}};
  return {{"schedules", names_of(schedules())}, {"entries", entries}};
}

void print_details() {
  for (const auto& [name, schedule] : schedules()) {
    fmt::print("{}: {}\n    {}\n", name, schedule.about, describe(schedule));
    if (schedule.bubble.value != nullptr) fmt::print("    bubble {}\n", schedule.bubble.text);
    if (schedule.peak.value != nullptr) fmt::print("    saves {}\n", schedule.peak.text);
  }
  fmt::print(
      "\np ranks, m microbatches, v chunks (stages) a rank. bubble: idle over ideal time between "
      "a\n"
      "rank's first and last action, at F = I = W; saves: most microbatches of stages at a time\n");
}

void declare_schedule(CLI::App& app, ScheduleOptions& options) {
  app.add_option("schedule", options.schedule,
                 "name (`schedule list`), or file with one row of actions a rank")
      ->type_name("NAME|FILE")
      ->required();
}

void declare_chunks(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--chunks", options.chunks, "stages a rank; 0: as many as it wants")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
}

void declare_shape(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--ranks", options.ranks, "pipeline ranks; a file's rows say it themselves")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--microbatches", options.microbatches, "microbatches of a step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void declare_costs(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--costs", options.costs,
                 "seconds of F, I and W of a microbatch on a stage (search: on a rank), or the "
                 "directory of a run that has measured its units")
      ->type_name("F,I,W|RUN")
      ->delimiter(',')
      ->expected(1, 3)
      ->default_str("1,1,1");
}

}  // namespace

Planned plan_of(const ScheduleOptions& options) {
  return is_name(options.schedule) ? generate(options) : read(options);
}

int run_schedule_list(const ScheduleOptions& options) {
  if (options.json)
    fmt::print("{}\n", list_json().dump());
  else if (options.details)
    print_details();
  else
    fmt::print("{}\n", fmt::join(names_of(schedules()), "\n"));
  return 0;
}

int run_schedule_show(const ScheduleOptions& options) {
  fmt::print("{}", to_text(plan_of(options).plan));
  return 0;
}

int run_schedule_simulate(const ScheduleOptions& options) {
  const ScheduleCosts costs(options.costs);
  const Planned planned = plan_of(options);
  const Timeline timeline =
      simulate(planned.plan, planned.layout, costs.of(planned.layout, planned.plan));
  if (!options.json) {
    print_timeline(timeline);
    print_path(planned.plan, timeline);
    return 0;
  }
  nlohmann::ordered_json figures{
      {"makespan", timeline.makespan},
      {"bubble", {{"mean", timeline.mean_bubble}, {"ranks", timeline.bubble}}},
      {"peak_activations", {{"microbatch_stages", timeline.peak_activations}}},
      {"critical_path", path_json(planned.plan, timeline)}};
  // Bytes and seconds need a model.
  if (costs.measured()) figures["peak_activations"]["bytes"] = timeline.peak_activation_bytes;
  fmt::print("{}\n", figures.dump());
  return 0;
}

int run_schedule_search(const ScheduleOptions& options) {
  const ScheduleSearch search{options.ranks, options.microbatches, options.memory, options.seed};
  const FoundSchedule found = search_schedule(search, ScheduleCosts(options.costs));
  if (!options.write.empty()) {
    std::ofstream file(options.write);
    file << to_text(found.plan);
    if (!file.flush())
      throw_failure("cannot write the schedule", options.write,
                    "--write FILE in a directory of yours");
  }
  fmt::print("{}", options.json ? found.report.dump() + "\n" : search_table(found.report));
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
  CLI::App* search = sub("search", "the best schedule for costs and memory", run_schedule_search);
  list->add_flag("--long", options->details, "also what each needs and promises");
  for (CLI::App* with_plan : {show, check, simulate}) {
    declare_schedule(*with_plan, *options);
    declare_chunks(*with_plan, *options);
  }
  for (CLI::App* with_shape : {show, check, simulate, search}) declare_shape(*with_shape, *options);
  show->add_flag("--compute-only", options->compute_only, "without transfers and reduction");
  for (CLI::App* with_costs : {simulate, search}) declare_costs(*with_costs, *options);
  check
      ->add_option("--activations", options->activations,
                   "most activations saved on a rank, in microbatches of stages; 0: any")
      ->check(CLI::NonNegativeNumber);
  search
      ->add_option("--memory", options->memory,
                   "activations that a rank may keep, in microbatches of its share of the model "
                   "(1f1b keeps as many as ranks); 0: any number")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  search->add_option("--seed", options->seed, "of the search's moves")->capture_default_str();
  search->add_option("--write", options->write, "the schedule found, for parallel.schedule")
      ->type_name("FILE");
  for (CLI::App* with_json : {list, check, simulate, search})
    with_json->add_flag("--json", options->json, "print one JSON object, nothing else");
  return
      [options, chosen](MpiEnvironment&) { return launcher_rank() == 0 ? (*chosen)(*options) : 0; };
}

}  // namespace concertina
