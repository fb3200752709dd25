#include "experiments/commands/command_schedule.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "core/error.h"
#include "core/number_text.h"
#include "experiments/commands/schedule_search.h"
#include "experiments/costs/figure.h"
#include "experiments/machine/signals.h"
#include "io/file.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

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
    const std::string_view about = schedule.about;
    fmt::print("{}: {}\n    {}\n", name, about.empty() ? "(no description)" : about,
               describe(schedule));
    if (schedule.bubble.value != nullptr) fmt::print("    bubble {}\n", schedule.bubble.text);
    if (schedule.peak.value != nullptr) fmt::print("    saves {}\n", schedule.peak.text);
    if (schedule.bubble.value == nullptr && schedule.peak.value == nullptr)
      fmt::print("    no closed form claimed\n");
  }
  fmt::print(
      "\np ranks, m microbatches, v chunks (stages) per rank. bubble: idle over ideal time between "
      "a\n"
      "rank's first and last action, at F = I = W; saves: most microbatches of stages at a time\n");
}

void declare_schedule(CLI::App& app, ScheduleOptions& options) {
  app.add_option("schedule", options.schedule,
                 "name (`schedule list`), or file with one row of actions per rank")
      ->type_name("NAME|FILE")
      ->required();
}

void declare_chunks(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--chunks", options.chunks, "stages per rank; 0: as many as it wants")
      ->check(whole_number(0, 64))
      ->default_str("0");
}

void declare_frozen(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--frozen", options.frozen,
                 "leading stages that only run forward, fewer than there are (see freeze.units)")
      ->check(whole_number(0, 65536))
      ->capture_default_str();
}

void declare_shape(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--ranks", options.ranks, "pipeline ranks; a schedule file says it itself")
      ->check(whole_number(1, 4096))
      ->default_str(fmt::to_string(kUsualRanks));
  app.add_option("--microbatches", options.microbatches,
                 "microbatches of a step; a schedule file says it itself")
      ->check(whole_number(1, 65536))
      ->default_str(fmt::to_string(kUsualMicrobatches));
  app.add_option("--leaves", options.leaves,
                 "leaves of the gradient sum, a divisor of the microbatches (numerics.leaves of a "
                 "run); left out: the largest that is at most 16")
      ->check(whole_number(1, 65536));
}

void declare_costs(CLI::App& app, ScheduleOptions& options) {
  app.add_option(
         "--costs", options.costs,
         "seconds of F, I and W of a microbatch on a stage (search, draw: on a rank); or a file "
         "with the header F,I,W and a row per stage; or the directory of a run that has "
         "measured its units")
      ->type_name("F,I,W|FILE.csv|RUN")
      ->capture_default_str();
  app.add_option("--links", options.links.links,
                 "what messages take: a machine file (`bench links --write`), or a run; left out: "
                 "the links of the run in --costs, else transfers are free")
      ->type_name("FILE|RUN");
  app.add_option("--boundary-bytes", options.links.boundary_bytes,
                 "of a message between stages; with --links and --costs F,I,W in seconds")
      ->type_name("BYTES")
      ->check(number(0, 1e15));
  app.add_option("--latency", options.links.latency,
                 "in place of --links: every message between ranks leaves when its producer ends, "
                 "takes so long and occupies nobody, as published simulations have it")
      ->type_name("SECONDS")
      ->check(number(0, kMostFigure));
}

void declare_bounds(CLI::App& app, ScheduleOptions& options) {
  app.add_option("--objective", options.objective,
                 "what is to be short: the step, or the longest span of a rank from its first to "
                 "its last action, for which ranks need not start or end together")
      ->check(CLI::IsMember({"step", "span"}))
      ->capture_default_str();
  app.add_option("--memory", options.memory,
                 "activations that a rank may keep, in microbatches of its share of the model "
                 "(1f1b keeps as many as ranks); 0: any number")
      ->check(number(0, kMostFigure))
      ->capture_default_str();
  app.add_option("--kept-for-w", options.kept_for_weight,
                 "share of a microbatch's activations that its W still needs after its I, in "
                 "--memory; `train` keeps all of them until W: 1")
      ->check(number(0, 1))
      ->capture_default_str();
  app.add_flag("--opposite", options.opposite,
               "also find opposite pipelines, which keep weights twice: --memory does not count "
               "weights");
}

}  // namespace

int run_schedule_list(const ScheduleOptions& options) {
  if (options.json)
    fmt::print("{}", json_line(list_json()));
  else if (options.details)
    print_details();
  else
    fmt::print("{}\n", fmt::join(names_of(schedules()), "\n"));
  return 0;
}

int run_schedule_show(const ScheduleOptions& options) {
  if (options.grid) return run_schedule_grid(options);
  fmt::print("{}", to_text(plan_of(options).plan));
  return 0;
}

ScheduleCosts costs_of(const ScheduleOptions& options) {
  // A path may have a comma.
  std::error_code error;
  if (std::filesystem::exists(options.costs, error))
    return ScheduleCosts({options.costs}, options.links);
  return ScheduleCosts(CLI::detail::split(options.costs, ','), options.links);
}

namespace {

/// Says what a long search does: on a terminal in one line, else by a line now and then. Ends it at
/// a SIGINT, SIGTERM or SIGUSR1.
class SearchTeller {
 public:
  bool operator()(const SearchProgress& progress) {
    if (const double time = now(); time > told_ + (terminal_ ? 1 : kSilence)) {
      told_ = time;
      const std::string best =
          std::isfinite(progress.best) ? fmt::format("{:g}", progress.best) : "none yet";
      fmt::print(stderr, "{}search: {} s, {}, {}, best so far {}{}", terminal_ ? "\r\x1b[K" : "",
                 static_cast<int>(time - start_), progress.doing, counted(progress.chunks, "chunk"),
                 best, terminal_ ? "" : "\n");
      std::fflush(stderr);
      line_ = terminal_;
    }
    return !stop_waits();
  }
  /// Clears the line, so that what follows begins at its start.
  void end() {
    if (line_) fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }

 private:
  static constexpr double kSilence = 5;  // seconds
  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  const double start_ = now();
  double told_ = start_;
  bool line_ = false;
};

}  // namespace

int run_schedule_search(const ScheduleOptions& options) {
  if (!options.write.empty()) require_output(options.write, "--write");
  ScheduleSearch search{.ranks = options.ranks.value_or(kUsualRanks),
                        .microbatches = options.microbatches.value_or(kUsualMicrobatches),
                        .memory = options.memory,
                        .seed = options.seed,
                        .max_chunks = options.max_chunks};
  search.leaves = options.leaves;
  search.objective = options.objective == "span" ? Objective::span : Objective::step;
  search.kept_for_weight = options.kept_for_weight;
  search.opposite = options.opposite;
  hold_stop_signals();
  SearchTeller teller;
  search.free_bytes = free_bytes();
  search.goes_on = std::ref(teller);
  const FoundSchedule found = search_schedule(search, costs_of(options));
  teller.end();
  if (!options.write.empty()) atomic_replace(options.write, to_text(found.plan));
  fmt::print("{}", options.json ? json_line(found.report) : search_table(found.report));
  if (found.report["stopped"].get<bool>()) return static_cast<int>(Exit::preempted);
  return 0;
}

Runner add_schedule(CLI::App& app) {
  using Body = int (*)(const ScheduleOptions&);
  auto options = std::make_shared<ScheduleOptions>();
  auto chosen = std::make_shared<Body>();
  app.require_subcommand(1);
  app.footer(
      "F: forward; I: gradient by the input, which the stage before waits for (the zero-bubble "
      "paper's B); W: gradient by the weights; B: I and W in one action.");
  const auto sub = [&](const char* name, const char* help, Body body) {
    CLI::App* added = app.add_subcommand(name, help);
    // The options and `chosen` live in the runner, which outlives the parsing.
    added->callback([chosen = chosen.get(), body] { *chosen = body; });
    return added;
  };
  CLI::App* list = sub("list", "names of all schedules", run_schedule_list);
  CLI::App* show = sub("show", "one row of actions per rank", run_schedule_show);
  CLI::App* check = sub("check", "prove it complete and free of deadlock", run_schedule_check);
  CLI::App* simulate =
      sub("simulate", "predict makespan, bubble and memory", run_schedule_simulate);
  CLI::App* draw = sub("draw", "predicted timelines as a picture", run_schedule_draw);
  CLI::App* search = sub("search", "the best schedule for costs and memory", run_schedule_search);
  list->add_flag("--long", options->details, "also what each needs and promises");
  for (CLI::App* with_plan : {show, check, simulate}) {
    declare_schedule(*with_plan, *options);
    declare_chunks(*with_plan, *options);
    declare_frozen(*with_plan, *options);
  }
  declare_draw(*draw, *options);
  declare_chunks(*draw, *options);
  declare_frozen(*draw, *options);
  for (CLI::App* with_shape : {show, check, simulate, draw, search})
    declare_shape(*with_shape, *options);
  for (CLI::App* with_grid : {show, draw})
    with_grid->add_flag("--grid", options->grid, "the predicted timeline in letters");
  show->add_flag("--compute-only", options->compute_only, "without transfers and reduction");
  for (CLI::App* with_costs : {simulate, draw, search}) declare_costs(*with_costs, *options);
  check
      ->add_option("--activations", options->activations,
                   "most activations saved on a rank, in microbatches of stages; 0: any")
      ->check(whole_number(0, 1 << 30));
  declare_bounds(*search, *options);
  search
      ->add_option(
          "--max-chunks", options->max_chunks,
          fmt::format("each schedule is tried with every number of chunks (stages per rank) "
                      "that it has, up to this one; 0: {}, or with the costs of a run as "
                      "many as its units allow",
                      kMaxChunks))
      ->check(whole_number(0, 64))
      ->capture_default_str();
  search->add_option("--seed", options->seed, "of the search's moves")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  search->add_option("--write", options->write, "the schedule found, for parallel.schedule")
      ->type_name("FILE");
  for (CLI::App* with_json : {list, check, simulate, draw, search})
    with_json->add_flag("--json", options->json, "print one JSON object, nothing else");
  return
      [options, chosen](MpiEnvironment&) { return launcher_rank() == 0 ? (*chosen)(*options) : 0; };
}

}  // namespace concertina
