#include "experiments/study/study_sections.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <vector>

#include "experiments/study/launcher.h"
#include "experiments/study/sampler.h"
#include "io/metrics.h"

namespace concertina {
namespace {

constexpr std::int64_t kMostRungSteps = 1LL << 40;
constexpr double kMostSeconds = 1e9, kMostNumber = std::numeric_limits<double>::max();
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

/// Numbers are whole ones: no method has others yet.
void read_option(TomlTable& table, const Option& one, OptionValue& value) {
  if (auto* number = std::get_if<std::int64_t>(&value))
    table.whole(one.name, static_cast<std::int64_t>(one.low), static_cast<std::int64_t>(one.high),
                *number);
  else
    table.text(one.name, std::get<std::string>(value));
}

/// An option of another method than the chosen one.
void refuse_idle_options(TomlTable& table, const std::string& chosen) {
  for (const Entry<SearchMethod>& method : search_methods())
    for (const Option& one : method.value.options)
      if (method.name != chosen && table.take(one.name) != nullptr)
        table.refuse(fmt::format("{} has no effect: method = \"{}\"", table.name(one.name), chosen),
                     fmt::format("method = \"{}\"; or leave {} out", method.name, one.name));
}

}  // namespace

SearchSection read_search(const TomlSource& source, const toml::node& node) {
  SearchSection search;
  TomlTable table(source, node, "search");
  table.take("method", [&](const toml::node& value, const std::string& name) {
    search.method = source.choice(value, name, names_of(search_methods()));
  });
  table.text("metric", search.metric);
  table.take("goal", [&](const toml::node& value, const std::string& name) {
    search.minimise = source.choice(value, name, kGoals) == "min";
  });
  const SearchMethod& method = method_of(search);
  search.options = with_usual(method.options);
  for (const Option& one : method.options)
    read_option(table, one, search.options.find(one.name)->second);
  refuse_idle_options(table, search.method);
  table.finish();
  if (!method.independent() && search.metric.empty())
    table.refuse(fmt::format("{} has no metric to go by", search.method),
                 "metric = \"validation_loss\"");
  for (const Option& one : method.options) {
    const auto* number = std::get_if<std::int64_t>(&search.options.find(one.name)->second);
    if (number != nullptr && static_cast<double>(*number) < one.low)
      table.refuse(fmt::format("{} needs {}, the {}", search.method, one.name, one.help),
                   fmt::format("{} = N", one.name));
  }
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
  table.number("launcher_limit", 0, kMostSeconds, launch.launcher_limit);
  table.take("stop_signal", [&](const toml::node& value, const std::string& name) {
    launch.stop_signal = source.choice(value, name, kStopSignals);
  });
  table.finish();
  return launch;
}

}  // namespace concertina
