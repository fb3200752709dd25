#include "experiments/study/study_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <ranges>
#include <set>

#include "core/error.h"
#include "core/text/nearest.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_value.h"
#include "experiments/study/sampler.h"
#include "io/toml_text.h"

namespace concertina {
namespace {

constexpr const char* kSeedKey = "run.seed";

/// The value as in `--set KEY=VALUE`: text without quotes.
std::string set_text(const toml::node& node) {
  const auto* text = node.as_string();
  if (text == nullptr) return node_text(node);
  const std::string& value = text->get();
  const bool quoted = value.empty() || value.find_first_of("\"'[\n") != std::string::npos;
  return quoted ? to_toml(value) : value;
}

/// Reads the tables of a study's file that define what varies ([set], [grid], [[zip]], [[arm]],
/// [random]), and the seeds, into a spec. Functions throw Error{bad_input} naming the location.
class AxesReader {
 public:
  AxesReader(const TomlSource& source, StudySpec& spec) : source_(source), spec_(spec) {}

  /// `section`: "set", or "override", whose values replace those in [set].
  void set(const toml::node& node, const std::string& section) {
    config_keys(node, section, [&](const std::string& key, const toml::node& value) {
      if (key == kRanksKey)
        source_.refuse(value, key, fmt::format("[{}] cannot set ranks", section),
                       "[launch] ranks = N, or ranks = [...] in [grid]");
      const auto before = std::ranges::find(spec_.set, key, &Settings::value_type::first);
      if (before != spec_.set.end())
        before->second = setting(key, value);
      else
        spec_.set.emplace_back(key, setting(key, value));
    });
  }

  void grid(const toml::node& node) {
    config_keys(node, "grid", [&](const std::string& key, const toml::node& list) {
      Axis axis;
      add_values(key, list, axis);
      add_axis(list, std::move(axis));
    });
  }

  /// Reads axes from the command line, which replace values in [set], and `seeds`.
  void sweep(const toml::node& node) {
    config_keys(node, "sweep", [&](const std::string& key, const toml::node& list) {
      std::erase_if(spec_.set, [&](const auto& set) { return set.first == key; });
      if (key != kSeedKey) {
        Axis axis;
        add_values(key, list, axis);
        return add_axis(list, std::move(axis));
      }
      if (!spec_.seeds.empty()) varied_.erase(key);
      spec_.seeds.clear();
      seeds(list);
    });
  }

  /// Reads one axis, whose positions have different keys.
  void arms(const toml::node& node) {
    const char* const fix = "[[arm]], name = \"NAME\" and lines of KEY = VALUE";
    once(kArmKey, node);
    Axis axis{{kArmKey}, {}};
    std::set<std::string> names;
    for (const toml::node& one : source_.list(node, kArmKey, fix)) {
      const toml::node* name = source_.table(one, kArmKey, fix).get("name");
      if (name == nullptr || name->value_or(std::string("-")).empty())
        source_.refuse(one, kArmKey, "an arm has no name", "name = \"NAME\"");
      Settings& arm = axis.values.emplace_back();
      arm.emplace_back(kArmKey, source_.text(*name, "name", "name = \"NAME\""));
      if (!names.insert(arm[0].second).second)
        source_.refuse(*name, "name", fmt::format("the arm '{}' is listed twice", arm[0].second),
                       "a unique name for each arm");
      config_keys(one, kArmKey,
                  [&](const std::string& key, const toml::node& value) {
                    arm.emplace_back(key, setting(key, value));
                    of_arms_.emplace(key, &value);
                  },
                  {"name"});
    }
    spec_.axes.push_back(std::move(axis));
  }

  void zips(const toml::node& node) {
    if (node.is_table()) return zip(node);
    for (const toml::node& one : source_.list(node, "zip", "[[zip]]")) zip(one);
  }

  void random(const toml::node& node) {
    TomlTable table(source_, node, "random");
    table.whole("trials", 1, kMostTrials, spec_.random.trials);
    table.whole("seed", std::int64_t{0}, std::numeric_limits<std::int64_t>::max(),
                spec_.random.seed);
    if (spec_.random.trials == 0)
      table.refuse("[random] requires a number of trials", "trials = N");
    config_keys(node, "random",
                [&](const std::string& key, const toml::node& value) {
                  once(key, value);
                  spec_.random.draws.push_back(draw(key, value));
                },
                {"trials", "seed"});
    if (spec_.random.draws.empty())
      table.refuse("[random] draws nothing", "KEY = {uniform = [LOW, HIGH]}");
  }

  void seeds(const toml::node& node) {
    for (const toml::node& seed : values("seeds", node))
      spec_.seeds.push_back(std::stoll(setting(kSeedKey, seed)));
    once(kSeedKey, node);
    if (std::set(spec_.seeds.begin(), spec_.seeds.end()).size() != spec_.seeds.size())
      source_.refuse(node, "seeds", "a seed is listed twice", "different seeds");
  }

  /// Reads the shapes that the study had before it was extended.
  void grown(const toml::node& node) {
    TomlTable table(source_, node, "grown");
    table.take("from", [&](const toml::node& shapes, const std::string& name) {
      for (const toml::node& shape : values(name, shapes)) {
        std::vector<std::int64_t>& sizes = spec_.grown.emplace_back();
        for (const toml::node& size : values(name, shape))
          sizes.push_back(source_.whole(size, name, 0, kMostTrials));
      }
    });
    table.finish();
  }

  /// Refuses keys that are set twice, too many trials and axes without effect.
  void finish() const {
    for (const auto& [key, node] : of_arms_)
      if (varied_.contains(key))
        source_.refuse(*node, key, fmt::format("{} is in an arm and is also an axis", key),
                       fmt::format("{} in arms or as an axis", key));
    require_seeds();
    require_grown();
    for (const auto& [key, value] : spec_.set)
      if (varied_.contains(key))
        throw_input(fmt::format("{} is set for all trials and is also an axis", key),
                    source_.name(), fmt::format("{} in [set] or as an axis", key));
    if (method_of(spec_.search).proposes() && !varied_.empty())
      throw_input(
          fmt::format("{} is an axis, but the sampler chooses what varies", *varied_.begin()),
          source_.name(),
          fmt::format("no axes or seeds with method = \"{}\"", spec_.search.method));
    double count = std::max(1, spec_.random.trials);
    for (const Axis& axis : spec_.axes) count *= static_cast<double>(axis.values.size());
    count *= static_cast<double>(std::max<std::size_t>(1, spec_.seeds.size()));
    if (count > kMostTrials)
      throw_input(fmt::format("the study has {:.0f} trials", count), source_.name(),
                  fmt::format("at most {}; [random] can draw some of them", kMostTrials));
  }

 private:
  using Take = std::function<void(const std::string& key, const toml::node& value)>;

  void zip(const toml::node& node) {
    Axis axis;
    config_keys(node, "zip", [&](const std::string& key, const toml::node& list) {
      add_values(key, list, axis);
    });
    if (axis.keys.empty())
      source_.refuse(node, "zip", "[[zip]] has no keys", "KEY = [VALUE, VALUE, ...]");
    add_axis(node, std::move(axis));
  }

  /// Adds a key with the values of `list`, one for each position of the axis.
  void add_values(const std::string& key, const toml::node& list, Axis& axis) {
    once(key, list);
    const toml::array& all = values(key, list);
    if (!axis.keys.empty() && all.size() != axis.values.size())
      source_.refuse(list, key,
                     fmt::format("{} has {} values, but {} has {}", key, all.size(), axis.keys[0],
                                 axis.values.size()),
                     "the same number of values for each key of a [[zip]]");
    axis.values.resize(all.size());
    axis.keys.push_back(key);
    for (std::size_t i = 0; i < all.size(); ++i)
      axis.values[i].emplace_back(key, setting(key, all[i]));
  }

  void add_axis(const toml::node& node, Axis axis) {
    std::vector<Settings> sorted = axis.values;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end())
      source_.refuse(
          node, axis.keys[0],
          fmt::format("the value {} is listed twice", fmt::join(std::views::values(*twice), ", ")),
          "each value once, or `seeds` to repeat a trial");
    spec_.axes.push_back(std::move(axis));
  }

  /// Refuses kSeedWord in values of a study without seeds.
  void require_seeds() const {
    if (!spec_.seeds.empty()) return;
    const auto refuse = [&](const Settings& settings) {
      for (const auto& [key, value] : settings)
        if (value.find(kSeedWord) != std::string::npos)
          throw_input(fmt::format("{} has {}, but the study has no seeds", key, kSeedWord),
                      source_.name(), "seeds = [1, 2, 3]");
    };
    refuse(spec_.set);
    for (const Axis& axis : spec_.axes) std::ranges::for_each(axis.values, refuse);
  }

  /// Refuses shapes that are not part of this study.
  void require_grown() const {
    for (const auto& shape : spec_.grown) {
      bool part = shape.size() == spec_.axes.size() + 2 && shape.front() <= spec_.random.trials &&
                  shape.back() <= std::ssize(spec_.seeds);
      for (std::size_t a = 0; part && a < spec_.axes.size(); ++a)
        part = shape[a + 1] <= std::ssize(spec_.axes[a].values);
      if (!part)
        throw_input(fmt::format("[{}] is not part of this study", fmt::join(shape, ", ")),
                    source_.name() + ": grown.from",
                    "remove [grown], which belongs in the study's copy of the file");
    }
  }

  Draw draw(const std::string& key, const toml::node& node) const {
    const std::string fix = fmt::format(
        "{} = {{uniform = [LOW, HIGH]}}, {{log_uniform = [LOW, HIGH]}} or {{choice = [...]}}", key);
    const toml::table& kinds = source_.table(node, key, fix);
    if (kinds.size() != 1)
      source_.refuse(node, key,
                     fmt::format("expected one distribution for {}, got {}", key, kinds.size()),
                     fix);
    const std::string kind((*kinds.begin()).first.str());
    const toml::node& arguments = (*kinds.begin()).second;
    Draw result;
    result.key = key;
    if (kind == "choice")
      for (const toml::node& value : values(key, arguments))
        result.choices.push_back(setting(key, value));
    else if (kind == "uniform" || kind == "log_uniform")
      draw_ends(kind, arguments, fix, result);
    else
      source_.refuse(node, key, fmt::format("unknown distribution '{}'", kind), fix);
    result.kind = kind == "choice"    ? Draw::Kind::choice
                  : kind == "uniform" ? Draw::Kind::uniform
                                      : Draw::Kind::log_uniform;
    return result;
  }

  void draw_ends(const std::string& kind, const toml::node& ends, const std::string& fix,
                 Draw& draw) const {
    const toml::array& both = source_.list(ends, draw.key, fix);
    if (both.size() != 2)
      source_.refuse(ends, draw.key,
                     fmt::format("{} has {} range limits instead of two", draw.key, both.size()),
                     fix);
    draw.low = source_.number(both[0], draw.key, fix);
    draw.high = source_.number(both[1], draw.key, fix);
    draw.whole = both[0].is_integer() && both[1].is_integer();
    if (!(draw.low < draw.high) || (kind == "log_uniform" && !(draw.low > 0)))
      source_.refuse(ends, draw.key, fmt::format("{} is not a range to draw from", node_text(ends)),
                     kind == "uniform" ? "LOW below HIGH" : "LOW above 0 and below HIGH");
    for (const toml::node& end : both) setting(draw.key, end);
  }

  /// Calls `take` for each config key in a table except for the names in `others`.
  void config_keys(const toml::node& node, const std::string& section, const Take& take,
                   const std::set<std::string>& others = {}) const {
    const std::string fix = fmt::format("[{}] and lines of KEY = VALUE", section);
    keys_below(source_.table(node, section, fix), "", take, others);
  }

  /// `path`: path of a table of dotted keys; empty for the section itself.
  void keys_below(const toml::table& table, const std::string& path, const Take& take,
                  const std::set<std::string>& others) const {
    for (const TomlMember& member : in_order(table)) {
      const toml::node& value = *member.value;
      if (others.contains(member.key)) continue;
      const std::string key = path.empty() ? member.key : path + "." + member.key;
      if (key == kRanksKey || find_key(key) != nullptr)
        take(key, value);
      else if (value.is_table() && !value.as_table()->empty() && is_table(key))
        keys_below(*value.as_table(), key, take, {});
      else if (constexpr std::array<std::string_view, 1> kOwn = {kRanksKey};
               path.empty() && !nearest_word(key, kOwn).empty())
        source_.refuse(value, key, fmt::format("unknown key {}", key), kRanksKey);
      else
        unknown_key(key, source_.place(value, key));
    }
  }

  /// The value of a config key or kRanksKey as text, checked like values in a config.
  std::string setting(const std::string& key, const toml::node& node) const {
    if (is_studys_own(key))
      source_.refuse(node, key, fmt::format("{} is set by the study", key),
                     "remove it: each trial has a directory in the study's folder");
    if (key == kRanksKey) return std::to_string(source_.whole(node, key, 1, kMostTrialRanks));
    RunConfig scratch;
    assign_key(key, node, source_, scratch);
    return set_text(node);
  }

  const toml::array& values(const std::string& key, const toml::node& node) const {
    const std::string fix = fmt::format("{} = [VALUE, VALUE, ...]", key);
    if (!node.is_array())
      source_.refuse(node, key, fmt::format("{} is not a list of values", key), fix);
    if (node.as_array()->empty())
      source_.refuse(node, key, fmt::format("the axis {} has no values", key), fix);
    return *node.as_array();
  }

  void once(const std::string& key, const toml::node& node) {
    if (!varied_.insert(key).second)
      source_.refuse(node, key, fmt::format("{} has two axes", key), "one axis for each key");
  }

  const TomlSource& source_;
  StudySpec& spec_;
  std::set<std::string> varied_;
  std::map<std::string, const toml::node*> of_arms_;  // keys, and where arms first set them
};

}  // namespace

void read_axes(const TomlSource& source, const toml::table& root, TomlTable& table,
               StudySpec& spec) {
  using Node = const toml::node&;
  using Name = const std::string&;
  AxesReader axes(source, spec);
  table.take("seeds", [&](Node node, Name) { axes.seeds(node); });
  for (const char* section : {"set", "override"})  // the second is from the command line
    table.take(section, [&](Node node, Name name) { axes.set(node, name); });
  table.take("random", [&](Node node, Name) { axes.random(node); });
  table.take("grid", [](Node, Name) {});
  table.take("sweep", [](Node, Name) {});
  table.take("zip", [](Node, Name) {});
  table.take(kArmKey, [](Node, Name) {});
  for (const TomlMember& member : in_order(root)) {  // the last axis varies fastest
    if (member.key == "grid") axes.grid(*member.value);
    if (member.key == "sweep") axes.sweep(*member.value);
    if (member.key == "zip") axes.zips(*member.value);
    if (member.key == kArmKey) axes.arms(*member.value);
  }
  table.take("grown", [&](Node node, Name) { axes.grown(node); });
  axes.finish();
}

}  // namespace concertina
