#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/config/input_file.h"
#include "experiments/study/launcher.h"
#include "experiments/study/study_spec.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBaseBytes = 16 << 20;
constexpr std::int64_t kMostTrials = 100'000;  // of one study
constexpr double kMostSeconds = 1e9;

std::string toml_of(const toml::node& node) {
  if (const auto* number = node.as_floating_point()) return to_toml(number->get());
  std::ostringstream text;
  text << toml::node_view<const toml::node>(node);
  return text.str();
}

/// As `--set KEY=VALUE` has it: text without quotes.
std::string set_text(const toml::node& node) {
  if (const auto* text = node.as_string()) {
    const std::string& value = text->get();
    const bool quoted = value.empty() || value.find_first_of("\"'[\n") != std::string::npos;
    return quoted ? to_toml(value) : value;
  }
  return toml_of(node);
}

class SpecReader {
 public:
  SpecReader(std::string source, const FindBase& find_base)
      : source_(std::move(source)), find_base_(find_base) {}

  StudySpec read(const toml::table& root) {
    for (const auto& [key, node] : in_order(root)) top(key, *node);
    if (spec_.bases.empty() && spec_.set.empty())
      throw_input("the study starts from no config", source_,
                  "base = \"config.toml\", relative to this file; or keys in [set]");
    finish();
    return std::move(spec_);
  }

 private:
  using Member = std::pair<std::string, const toml::node*>;

  /// As in the file: tables of the library are sorted by name.
  static std::vector<Member> in_order(const toml::table& table) {
    std::vector<Member> members;
    for (const auto& [key, node] : table) members.emplace_back(std::string(key.str()), &node);
    std::ranges::stable_sort(members, [](const Member& a, const Member& b) {
      const auto at = [](const Member& one) { return begin_of(*one.second); };
      return at(a) < at(b);
    });
    return members;
  }
  /// Where a value stands; tables of dotted keys have no place of their own.
  static std::pair<std::uint32_t, std::uint32_t> begin_of(const toml::node& node) {
    std::pair first(node.source().begin.line, node.source().begin.column);
    if (const auto* table = node.as_table())
      for (const auto& [key, value] : *table) first = std::min(first, begin_of(value));
    return first;
  }

  std::string place(const toml::node& node, const std::string& key) const {
    const auto [line, column] = begin_of(node);
    return fmt::format("{}:{}:{}: {}", source_, line, column, key);
  }
  [[noreturn]] void refuse(const toml::node& node, const std::string& key, std::string what,
                           std::string fix) const {
    throw_input(std::move(what), place(node, key), std::move(fix));
  }

  using Readers = std::vector<std::pair<std::string_view, std::function<void(const toml::node&)>>>;

  /// Gives each member to the reader of its name.
  void members(const toml::table& table, const std::string& path, const Readers& readers) {
    for (const auto& [key, node] : in_order(table)) {
      const auto found = std::ranges::find(readers, key, &Readers::value_type::first);
      if (found == readers.end()) {
        std::vector<std::string_view> known;
        for (const auto& [name, reader] : readers) known.push_back(name);
        refuse(*node, path.empty() ? key : path + "." + key, fmt::format("unknown key {}", key),
               one_of(nearest_word(key, known), known));
      }
      found->second(*node);
    }
  }
  void table(const toml::node& node, const std::string& path, const Readers& readers) {
    if (!node.is_table())
      refuse(node, path, fmt::format("{} is no table", path), fmt::format("[{}]", path));
    members(*node.as_table(), path, readers);
  }

  // Values.
  std::string text(const toml::node& node, const std::string& key) const {
    if (!node.is_string()) refuse(node, key, fmt::format("{} is no text", key), "text in quotes");
    return node.as_string()->get();
  }
  std::int64_t whole(const toml::node& node, const std::string& key, std::int64_t low,
                     std::int64_t high) const {
    if (!node.is_integer() || node.as_integer()->get() < low || node.as_integer()->get() > high)
      refuse(node, key, fmt::format("{} = {}", key, toml_of(node)),
             fmt::format("a whole number from {} to {}", low, high));
    return node.as_integer()->get();
  }
  double number(const toml::node& node, const std::string& key, double low, double high) const {
    const double value = node.value<double>().value_or(std::nan(""));
    if (!node.is_number() || !(value >= low && value <= high))
      refuse(node, key, fmt::format("{} = {}", key, toml_of(node)),
             fmt::format("a number from {} to {}", low, high));
    return value;
  }
  std::string choice(const toml::node& node, const std::string& key,
                     const std::vector<std::string_view>& words) const {
    const std::string word = text(node, key);
    if (std::ranges::find(words, word) == words.end())
      refuse(node, key, fmt::format("{} = '{}' is unknown", key, word),
             one_of(nearest_word(word, words), words));
    return word;
  }
  const toml::array& list(const toml::node& node, const std::string& key) const {
    if (!node.is_array() || node.as_array()->empty())
      refuse(node, key,
             node.is_array() ? fmt::format("the axis {} has no values", key)
                             : fmt::format("{} is no list of values", key),
             fmt::format("{} = [VALUE, VALUE, ...]", key));
    return *node.as_array();
  }

  /// A value of a config key, or of kRanksKey, as text; it is checked as the config checks it.
  std::string setting(const std::string& key, const toml::node& node) const {
    if (key == kRanksKey) return std::to_string(whole(node, key, 1, 1 << 20));
    const std::string value = set_text(node);
    try {
      RunConfig scratch;
      set_config(key + "=" + value, scratch);
    } catch (const Error& error) {
      const bool unread = error.message().starts_with("--set");
      throw Error(error.code(),
                  unread ? fmt::format("{} = {} is no value of it", key, value) : error.message(),
                  place(node, key), error.fix());
    }
    return value;
  }

  /// Calls `take` for each config key of a table, but for the names in `others`: dotted keys are
  /// tables in it.
  void config_keys_of(const toml::table& table, const std::string& path, const std::string& section,
                      const std::function<void(const std::string&, const toml::node&)>& take,
                      const std::set<std::string>& others = {}) {
    for (const auto& [name, node] : in_order(table)) {
      if (others.contains(name)) continue;
      const std::string key = path.empty() ? name : path + "." + name;
      if (key == kRanksKey || find_key(key) != nullptr)
        take(key, *node);
      else if (node->is_table() && !node->as_table()->empty() && path.empty() && is_section(name))
        config_keys_of(*node->as_table(), key, section, take);
      else
        unknown(*node, key, section);
    }
  }
  [[noreturn]] void unknown(const toml::node& node, const std::string& key,
                            const std::string& section) const {
    const std::string nearest = nearest_key(key),
                      known = keys_of_section(key.substr(0, key.find('.')));
    const std::string all = known.empty() ? "a config key, see --help-config; or ranks"
                                          : fmt::format("its table has: {}", known);
    refuse(node, key, fmt::format("[{}] has the unknown key {}", section, key),
           nearest.empty() ? all : fmt::format("{} ({})", nearest, all));
  }

  void once(const toml::node& node, const std::string& key) {
    if (!seen_.insert(key).second)
      refuse(node, key, fmt::format("{} varies twice", key), "one axis for each key");
  }

  // Sections.
  void top(const std::string& key, const toml::node& node) {
    const Readers readers = {
        {"name", [&](const toml::node& value) { spec_.name = text(value, "name"); }},
        {"base", [&](const toml::node& value) { base(value); }},
        {"seeds", [&](const toml::node& value) { seeds(value); }},
        {"set", [&](const toml::node& value) { set(value); }},
        {"grid", [&](const toml::node& value) { grid(value); }},
        {"zip", [&](const toml::node& value) { zips(value); }},
        {"random", [&](const toml::node& value) { random(value); }},
        {"search", [&](const toml::node& value) { search(value); }},
        {"stop", [&](const toml::node& value) { stop(value); }},
        {"launch", [&](const toml::node& value) { launch(value); }}};
    const auto found = std::ranges::find(readers, key, &Readers::value_type::first);
    if (found != readers.end()) return found->second(node);
    std::vector<std::string_view> known;
    for (const auto& [name, reader] : readers) known.push_back(name);
    refuse(node, key, fmt::format("a study has no '{}'", key),
           one_of(nearest_word(key, known), known));
  }

  void base(const toml::node& node) {
    const auto add = [&](const toml::node& one) {
      const std::string name = find_base_(spec_.bases.size(), text(one, "base"));
      try {
        spec_.bases.push_back(
            {name,
             read_input_file(name, kMostBaseBytes, "a config file, relative to the study's file")});
      } catch (const Error& error) {
        throw Error(error.code(), error.message(), place(one, "base") + ": " + name, error.fix());
      }
      RunConfig scratch;
      read_config(spec_.bases.back().text, name, scratch);
    };
    if (const auto* files = node.as_array())
      for (const toml::node& file : *files) add(file);
    else
      add(node);
  }
  void seeds(const toml::node& node) {
    for (const toml::node& seed : list(node, "seeds"))
      spec_.seeds.push_back(std::stoll(setting("run.seed", seed)));
    once(node, "run.seed");
    if (std::set(spec_.seeds.begin(), spec_.seeds.end()).size() != spec_.seeds.size())
      refuse(node, "seeds", "a seed is there twice", "different seeds");
  }
  void set(const toml::node& node) {
    table_of_keys(node, "set", [&](const std::string& key, const toml::node& value) {
      if (key == kRanksKey)
        refuse(value, key, "[set] has no ranks", "[launch] ranks = N, or ranks = [...] in [grid]");
      spec_.set.emplace_back(key, setting(key, value));
    });
  }
  void table_of_keys(const toml::node& node, const std::string& section,
                     const std::function<void(const std::string&, const toml::node&)>& take) {
    if (!node.is_table())
      refuse(node, section, fmt::format("{} is no table", section), fmt::format("[{}]", section));
    config_keys_of(*node.as_table(), "", section, take);
  }
  void grid(const toml::node& node) {
    table_of_keys(node, "grid", [&](const std::string& key, const toml::node& values) {
      once(values, key);
      Axis axis{{key}, {}};
      for (const toml::node& value : list(values, key))
        axis.values.push_back({setting(key, value)});
      add_axis(values, std::move(axis));
    });
  }
  void zips(const toml::node& node) {
    const auto* tables = node.as_array();
    if (tables == nullptr && node.is_table()) return zip(*node.as_table());
    if (tables == nullptr) refuse(node, "zip", "zip is no table", "[[zip]]");
    for (const toml::node& one : *tables) {
      if (!one.is_table()) refuse(one, "zip", "zip is no table", "[[zip]]");
      zip(*one.as_table());
    }
  }
  void zip(const toml::table& table) {
    Axis axis;
    config_keys_of(table, "", "zip", [&](const std::string& key, const toml::node& values) {
      once(values, key);
      const toml::array& all = list(values, key);
      if (!axis.keys.empty() && all.size() != axis.values.size())
        refuse(values, key,
               fmt::format("{} has {} values, {} has {}", key, all.size(), axis.keys[0],
                           axis.values.size()),
               "as many values for each key of one [[zip]]");
      axis.values.resize(all.size());
      axis.keys.push_back(key);
      for (std::size_t i = 0; i < all.size(); ++i) axis.values[i].push_back(setting(key, all[i]));
    });
    if (axis.keys.empty()) refuse(table, "zip", "[[zip]] has no keys", "KEY = [VALUE, VALUE, ...]");
    add_axis(table, std::move(axis));
  }
  void add_axis(const toml::node& node, Axis axis) {
    std::vector<std::vector<std::string>> sorted = axis.values;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end())
      refuse(node, axis.keys[0],
             fmt::format("the value {} is there twice", fmt::join(*twice, ", ")),
             "each value once; `seeds` repeats a trial");
    spec_.axes.push_back(std::move(axis));
  }
  void random(const toml::node& node) {
    if (!node.is_table()) refuse(node, "random", "random is no table", "[random]");
    const toml::table& draws = *node.as_table();
    if (const toml::node* trials = draws.get("trials"))
      spec_.random.trials = static_cast<int>(whole(*trials, "random.trials", 1, kMostTrials));
    else
      refuse(node, "random", "[random] has no number of trials", "trials = N");
    if (const toml::node* seed = draws.get("seed"))
      spec_.random.seed = whole(*seed, "random.seed", 0, std::numeric_limits<std::int64_t>::max());
    config_keys_of(draws, "", "random",
                   [&](const std::string& key, const toml::node& value) {
                     once(value, key);
                     spec_.random.draws.push_back(draw(key, value));
                   },
                   {"trials", "seed"});
    if (spec_.random.draws.empty())
      refuse(node, "random", "[random] draws nothing", "KEY = {uniform = [LOW, HIGH]}");
  }
  Draw draw(const std::string& key, const toml::node& node) const {
    const std::string fix = fmt::format(
        "{} = {{uniform = [LOW, HIGH]}}, {{log_uniform = [LOW, HIGH]}} or {{choice = [...]}}", key);
    const auto* kinds = node.as_table();
    if (kinds == nullptr || kinds->size() != 1)
      refuse(node, key, fmt::format("{} is no way to draw a value", toml_of(node)), fix);
    const std::string kind((*kinds->begin()).first.str());
    const toml::node& values = (*kinds->begin()).second;
    Draw result;
    result.key = key;
    if (kind == "choice") {
      result.kind = Draw::Kind::choice;
      for (const toml::node& value : list(values, key))
        result.choices.push_back(setting(key, value));
      return result;
    }
    if (kind != "uniform" && kind != "log_uniform")
      refuse(node, key, fmt::format("a value cannot be drawn by '{}'", kind), fix);
    const auto* ends = values.as_array();
    if (ends == nullptr || ends->size() != 2) refuse(values, key, "not two ends of a range", fix);
    result.kind = kind == "uniform" ? Draw::Kind::uniform : Draw::Kind::log_uniform;
    result.low = number((*ends)[0], key, -1e300, 1e300);
    result.high = number((*ends)[1], key, -1e300, 1e300);
    result.whole = (*ends)[0].is_integer() && (*ends)[1].is_integer();
    if (!(result.low < result.high) || (kind == "log_uniform" && !(result.low > 0)))
      refuse(values, key, fmt::format("{} is no range to draw from", toml_of(values)),
             kind == "uniform" ? "LOW below HIGH" : "LOW above 0 and below HIGH");
    for (const toml::node& end : *ends) setting(key, end);
    return result;
  }
  void search(const toml::node& node) {
    SearchSection& search = spec_.search;
    table(
        node, "search",
        {{"method",
          [&](const toml::node& value) {
            search.method = choice(value, "search.method", {"all", "asha", "sampler"});
          }},
         {"metric", [&](const toml::node& value) { search.metric = text(value, "search.metric"); }},
         {"goal",
          [&](const toml::node& value) {
            search.minimise = choice(value, "search.goal", {"min", "max"}) == "min";
          }},
         {"min_steps",
          [&](const toml::node& value) {
            search.min_steps = whole(value, "search.min_steps", 1, 1LL << 40);
          }},
         {"factor",
          [&](const toml::node& value) {
            search.factor = static_cast<int>(whole(value, "search.factor", 2, 100));
          }},
         {"command",
          [&](const toml::node& value) { search.command = text(value, "search.command"); }},
         {"trials", [&](const toml::node& value) {
            search.trials = static_cast<int>(whole(value, "search.trials", 1, kMostTrials));
          }}});
    if (search.method != "all" && search.metric.empty())
      refuse(node, "search", fmt::format("{} has no metric to go by", search.method),
             "metric = \"validation_loss\"");
    if (search.method == "asha" && search.min_steps == 0)
      refuse(node, "search", "asha has no lowest rung",
             "min_steps = N, steps after which trials are compared first");
    if (search.method != "asha" && search.min_steps != 0)
      refuse(node, "search", "min_steps is of asha alone", "method = \"asha\"");
  }
  void stop(const toml::node& node) {
    StopSection& stop = spec_.stop;
    constexpr double kInf = std::numeric_limits<double>::max();
    table(
        node, "stop",
        {{"metric", [&](const toml::node& value) { stop.metric = text(value, "stop.metric"); }},
         {"above",
          [&](const toml::node& value) {
            stop.above = number(value, "stop.above", -kInf, kInf), stop.has_above = true;
          }},
         {"below",
          [&](const toml::node& value) {
            stop.below = number(value, "stop.below", -kInf, kInf), stop.has_below = true;
          }},
         {"after",
          [&](const toml::node& value) { stop.after = whole(value, "stop.after", 0, 1LL << 40); }},
         {"patience", [&](const toml::node& value) {
            stop.patience = static_cast<int>(whole(value, "stop.patience", 1, 1 << 30));
          }}});
    if (stop.metric.empty() || (!stop.has_above && !stop.has_below && stop.patience == 0))
      refuse(node, "stop", "[stop] does not say when",
             "metric = \"loss\", and above, below or patience");
  }
  void launch(const toml::node& node) {
    LaunchSection& launch = spec_.launch;
    table(node, "launch",
          {{"command",
            [&](const toml::node& value) { launch.command = text(value, "launch.command"); }},
           {"ranks",
            [&](const toml::node& value) {
              launch.ranks = static_cast<int>(whole(value, "launch.ranks", 1, 1 << 20));
            }},
           {"jobs",
            [&](const toml::node& value) {
              launch.jobs = static_cast<int>(whole(value, "launch.jobs", 1, 1 << 16));
            }},
           {"time_limit",
            [&](const toml::node& value) {
              launch.time_limit = number(value, "launch.time_limit", 0, kMostSeconds);
            }},
           {"stop_signal", [&](const toml::node& value) {
              launch.stop_signal = choice(value, "launch.stop_signal", {"USR1", "TERM", "INT"});
            }}});
    if (!node.as_table()->contains("command")) return;
    split_words(launch.command, place(node, "launch.command"));
    if (launch.command.find("{args}") == std::string::npos)
      refuse(node, "launch.command", "the launcher has no place for what it starts",
             "\"mpirun -n {ranks} {program} {args}\"");
  }

  void finish() {
    for (const auto& [key, value] : spec_.set)
      if (seen_.contains(key))
        throw_input(fmt::format("{} is set for all trials and varies as well", key), source_,
                    fmt::format("{} in [set], or as an axis", key));
    for (const char* key : {"run.dir", "run.name", "checkpoint.dir"})
      if (seen_.contains(key) ||
          std::ranges::find(spec_.set, key, &Settings::value_type::first) != spec_.set.end())
        throw_input(fmt::format("{} is the study's own", key), source_,
                    "each trial has a directory of its own in the study's folder");
    double count = std::max(1, spec_.random.trials);
    for (const Axis& axis : spec_.axes) count *= static_cast<double>(axis.values.size());
    count *= static_cast<double>(std::max<std::size_t>(1, spec_.seeds.size()));
    if (count > static_cast<double>(kMostTrials))
      throw_input(fmt::format("the study has {:.0f} trials", count), source_,
                  fmt::format("at most {}: [random] draws some of them", kMostTrials));
  }

  std::string source_;
  const FindBase& find_base_;
  std::set<std::string> seen_;
  StudySpec spec_;
};

}  // namespace

StudySpec read_study_spec(const std::string& toml, const std::string& source,
                          const FindBase& find_base) {
  try {
    return SpecReader(source, find_base).read(toml::parse(toml));
  } catch (const toml::parse_error& error) {
    throw_input(
        fmt::format("not valid TOML: {}", error.description()),
        fmt::format("{}:{}:{}", source, error.source().begin.line, error.source().begin.column),
        "base = \"config.toml\" and axes in [grid], see the user's guide");
  }
}

StudySpec read_study_file(const std::string& path, std::string& toml) {
  toml = read_input_file(path, kMostBaseBytes, "STUDY.toml names an existing study file");
  const fs::path directory = fs::path(path).parent_path();
  StudySpec spec = read_study_spec(toml, path, [&](std::size_t, const std::string& base) {
    return (directory / base).lexically_normal().string();
  });
  if (spec.name.empty()) spec.name = fs::path(path).stem().string();
  return spec;
}

}  // namespace concertina
