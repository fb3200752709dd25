// `concertina schedule search`: finds the best schedule for given costs and a memory limit.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>

#include "core/clock.h"
#include "core/text/number_text.h"
#include "experiments/commands/schedule/schedule_options.h"
#include "experiments/machine/output.h"
#include "experiments/machine/signals.h"
#include "experiments/predict/schedule_search_report.h"
#include "io/file.h"
#include "parallel/predict/machine.h"

namespace concertina {
namespace {

struct SearchOptions : ScheduleOptions {
  ScheduleSearch search;
  std::string objective = "step", write;
  bool force = false;
};

/// Reports the progress of a long search, on a single line in a terminal and otherwise every few
/// seconds. SIGINT, SIGTERM and SIGUSR1 stop the search.
class SearchTeller {
 public:
  bool operator()(const SearchProgress& progress) {
    constexpr double kSilence = 5;  // seconds
    if (const double time = now(); time > reported_ + (line_.on_terminal() ? 1 : kSilence)) {
      reported_ = time;
      const std::string text = fmt::format(
          "search: {} s, {}, {}, best so far {}", static_cast<int>(time - start_), progress.doing,
          counted(progress.chunks, "chunk"),
          std::isfinite(progress.best) ? fmt::format("{:g}", progress.best) : "none yet");
      line_.draw(text);
    }
    return !stop_waits();
  }
  void end() { line_.clear(); }

 private:
  StatusLine line_{stderr};
  const double start_ = now();
  double reported_ = start_;
};

int run_schedule_search(const SearchOptions& options) {
  options.needs("--force", "--write", !options.write.empty());
  if (!options.write.empty()) require_output(options.write, "--write");
  if (!options.write.empty() && !options.force)
    require_nothing_at(options.write, "another --write, or --force to replace it");
  ScheduleSearch search = options.search;
  search.ranks = options.ranks.value_or(kDefaultRanks);
  search.microbatches = options.microbatches.value_or(kDefaultMicrobatches);
  search.leaves = options.leaves;
  search.objective = options.objective == "span" ? Objective::span : Objective::step;
  search.free_bytes = free_bytes();
  hold_stop_signals();
  SearchTeller teller;
  search.keep_searching = std::ref(teller);
  const SearchedSchedule found = search_schedule(search, costs_of(options));
  teller.end();
  if (!options.write.empty()) atomic_replace(options.write, to_text(found.plan));
  fmt::print("{}", options.json ? json_line(found.report) : search_table(found.report));
  if (found.report["stopped"].get<bool>()) return static_cast<int>(Exit::preempted);
  return 0;
}

void add_bounds(CLI::App& app, SearchOptions& options) {
  add_default_option(
      app, "--objective", options.objective,
      "objective to minimize: the step's duration or, if ranks may start and end at different "
      "times, the longest span from a rank's first to its last action")
      ->check(CLI::IsMember({"step", "span"}));
  add_default_option(
      app, "--memory", options.search.memory,
      "maximum activations on a rank, in microbatches of the rank's share of the model (1f1b "
      "keeps as many as there are ranks); 0: unlimited")
      ->check(number(0, kLargestValue));
  add_default_option(app, "--kept-for-w", options.search.kept_for_weight,
                     "share of a microbatch's activations that W still needs after I, for --memory "
                     "(1 for `train`, which keeps all activations until W)")
      ->check(number(0, 1));
  app.add_flag(
      "--opposite", options.search.opposite,
      "also search opposite pipelines, which store weights twice (not counted in --memory)");
}

void add_search_options(CLI::App& app, SearchOptions& options) {
  add_shape_options(app, options);
  add_cost_options(app, options);
  add_bounds(app, options);
  add_default_option(
      app, "--max-chunks", options.search.max_chunks,
      fmt::format("maximum number of chunks (stages per rank) to try; 0: {}, or as many "
                  "as the units of a run in --costs allow",
                  kMaxChunks))
      ->check(whole_number(0, 64));
  add_default_option(app, "--seed", options.search.seed, "random seed for the search")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()));
  app.add_option("--write", options.write,
                 "file to write the best schedule to, for parallel.schedule")
      ->type_name("FILE");
  app.add_flag("--force", options.force, "replace an existing --write file");
  add_json_option(app, options);
}

}  // namespace

Command command_schedule_search() {
  return make_command<SearchOptions>("find the best schedule for given costs and memory",
                                     add_search_options, run_schedule_search);
}

}  // namespace concertina
