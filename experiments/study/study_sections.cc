#include "experiments/study/study_sections.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <vector>

#include "experiments/study/launcher.h"
#include "io/metrics.h"

namespace concertina {
namespace {

constexpr std::int64_t kMostRungSteps = 1LL << 40;
constexpr double kMostSeconds = 1e9, kMostNumber = std::numeric_limits<double>::max();
constexpr std::array<std::string_view, 3> kMethods = {"all", "asha", "sampler"};
constexpr std::array<std::string_view, 2> kGoals = {"min", "max"};
constexpr std::array<std::string_view, 3> kStopSignals = {"USR1", "TERM", "INT"};

/// What the log of a run has numbers of.
std::vector<std::string> stop_metrics() {
  StepMetrics all;
  all.batches = 2;  // so that those are there that not every run has
  all.mfu = 1;
  std::vector<std::string> names = {"validation_loss"};
  const auto line = to_json(all);
  for (const auto& [key, value] : line.items())
    if (value.is_number()) names.push_back(key);
  return names;
}

}  // namespace

SearchSection read_search(const TomlSource& source, const toml::node& node) {
  SearchSection search;
  TomlTable table(source, node, "search");
  table.take("method", [&](const toml::node& value, const std::string& name) {
    search.method = source.choice(value, name, kMethods);
  });
  table.text("metric", search.metric);
  table.take("goal", [&](const toml::node& value, const std::string& name) {
    search.minimise = source.choice(value, name, kGoals) == "min";
  });
  table.whole("min_steps", std::int64_t{1}, kMostRungSteps, search.min_steps);
  table.whole("factor", 2, 100, search.factor);
  table.text("command", search.command);
  table.whole("trials", 1, kMostTrials, search.trials);
  table.finish();
  for (const auto& [key, method] : {std::pair("min_steps", "asha"),
                                    {"factor", "asha"},
                                    {"command", "sampler"},
                                    {"trials", "sampler"}})
    if (node.as_table()->contains(key) && search.method != method)
      table.refuse(fmt::format("{} has no effect: method = \"{}\"", table.name(key), search.method),
                   fmt::format("method = \"{}\"; or leave {} out", method, key));
  if (search.method != "all" && search.metric.empty())
    table.refuse(fmt::format("{} has no metric to go by", search.method),
                 "metric = \"validation_loss\"");
  if (search.method == "asha" && search.min_steps == 0)
    table.refuse("asha has no lowest rung",
                 "min_steps = N, steps after which trials are compared first");
  return search;
}

StopSection read_stop(const TomlSource& source, const toml::node& node) {
  StopSection stop;
  TomlTable table(source, node, "stop");
  table.take("metric", [&](const toml::node& value, const std::string& name) {
    const std::vector<std::string> metrics = stop_metrics();
    stop.metric =
        source.choice(value, name, std::vector<std::string_view>(metrics.begin(), metrics.end()));
  });
  table.take("above", [&](const toml::node& value, const std::string& name) {
    stop.above = source.number(value, name, -kMostNumber, kMostNumber);
    stop.has_above = true;
  });
  table.take("below", [&](const toml::node& value, const std::string& name) {
    stop.below = source.number(value, name, -kMostNumber, kMostNumber);
    stop.has_below = true;
  });
  table.whole("after", std::int64_t{0}, kMostRungSteps, stop.after);
  table.whole("patience", 1, 1 << 30, stop.patience);
  table.finish();
  if (stop.metric.empty() || (!stop.has_above && !stop.has_below && stop.patience == 0))
    table.refuse("[stop] does not say when", "metric = \"loss\", and above, below or patience");
  if (stop.has_above && stop.has_below && stop.above < stop.below)
    table.refuse(fmt::format("every number is above {} or below {}: each trial would end at once",
                             stop.above, stop.below),
                 "above = the higher end of the numbers that are left alone, below = the lower");
  return stop;
}

LaunchSection read_launch(const TomlSource& source, const toml::node& node) {
  LaunchSection launch;
  TomlTable table(source, node, "launch");
  table.take("command", [&](const toml::node& value, const std::string& name) {
    launch.command = source.text(value, name);
    split_words(launch.command, source.place(value, name));
    if (launch.command.find("{args}") == std::string::npos)
      source.refuse(value, name, "the launcher has no place for what it starts",
                    "\"mpirun -n {ranks} {program} {args}\"");
  });
  table.whole("ranks", 1, kMostTrialRanks, launch.ranks);
  table.whole("jobs", 1, 1 << 16, launch.jobs);
  table.number("time_limit", 0, kMostSeconds, launch.time_limit);
  table.take("stop_signal", [&](const toml::node& value, const std::string& name) {
    launch.stop_signal = source.choice(value, name, kStopSignals);
  });
  table.finish();
  return launch;
}

}  // namespace concertina
