#include "experiments/study/study_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/config/config_value.h"
#include "experiments/study/sampler.h"

namespace concertina {
namespace {

/// As `--set KEY=VALUE` has it: text without quotes.
std::string set_text(const toml::node& node) {
  const auto* text = node.as_string();
  if (text == nullptr) return node_text(node);
  const std::string& value = text->get();
  const bool quoted = value.empty() || value.find_first_of("\"'[\n") != std::string::npos;
  return quoted ? to_toml(value) : value;
}

}  // namespace

void AxesReader::set(const toml::node& node, const std::string& section) {
  config_keys(node, section, [&](const std::string& key, const toml::node& value) {
    if (key == kRanksKey)
      source_.refuse(value, key, fmt::format("[{}] has no ranks", section),
                     "[launch] ranks = N, or ranks = [...] in [grid]");
    const auto before = std::ranges::find(spec_.set, key, &Settings::value_type::first);
    if (before != spec_.set.end())
      before->second = setting(key, value);
    else
      spec_.set.emplace_back(key, setting(key, value));
  });
}

void AxesReader::grid(const toml::node& node) {
  config_keys(node, "grid", [&](const std::string& key, const toml::node& list) {
    once(key, list);
    Axis axis{{key}, {}};
    for (const toml::node& value : values(key, list)) axis.values.push_back({setting(key, value)});
    add_axis(list, std::move(axis));
  });
}

void AxesReader::zips(const toml::node& node) {
  if (node.is_table()) return zip(node);
  for (const toml::node& one : source_.list(node, "zip", "[[zip]]")) zip(one);
}

void AxesReader::zip(const toml::node& node) {
  Axis axis;
  config_keys(node, "zip", [&](const std::string& key, const toml::node& list) {
    once(key, list);
    const toml::array& all = values(key, list);
    if (!axis.keys.empty() && all.size() != axis.values.size())
      source_.refuse(list, key,
                     fmt::format("{} has {} values, {} has {}", key, all.size(), axis.keys[0],
                                 axis.values.size()),
                     "as many values for each key of one [[zip]]");
    axis.values.resize(all.size());
    axis.keys.push_back(key);
    for (std::size_t i = 0; i < all.size(); ++i) axis.values[i].push_back(setting(key, all[i]));
  });
  if (axis.keys.empty())
    source_.refuse(node, "zip", "[[zip]] has no keys", "KEY = [VALUE, VALUE, ...]");
  add_axis(node, std::move(axis));
}

void AxesReader::add_axis(const toml::node& node, Axis axis) {
  std::vector<std::vector<std::string>> sorted = axis.values;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end())
    source_.refuse(node, axis.keys[0],
                   fmt::format("the value {} is there twice", fmt::join(*twice, ", ")),
                   "each value once; `seeds` repeats a trial");
  spec_.axes.push_back(std::move(axis));
}

void AxesReader::random(const toml::node& node) {
  TomlTable table(source_, node, "random");
  table.whole("trials", 1, kMostTrials, spec_.random.trials);
  table.whole("seed", std::int64_t{0}, std::numeric_limits<std::int64_t>::max(), spec_.random.seed);
  if (spec_.random.trials == 0) table.refuse("[random] has no number of trials", "trials = N");
  config_keys(node, "random",
              [&](const std::string& key, const toml::node& value) {
                once(key, value);
                spec_.random.draws.push_back(draw(key, value));
              },
              {"trials", "seed"});
  if (spec_.random.draws.empty())
    table.refuse("[random] draws nothing", "KEY = {uniform = [LOW, HIGH]}");
}

Draw AxesReader::draw(const std::string& key, const toml::node& node) const {
  const std::string fix = fmt::format(
      "{} = {{uniform = [LOW, HIGH]}}, {{log_uniform = [LOW, HIGH]}} or {{choice = [...]}}", key);
  const toml::table& kinds = source_.table(node, key, fix);
  if (kinds.size() != 1)
    source_.refuse(node, key, fmt::format("{} has {} ways to draw a value", key, kinds.size()),
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
    source_.refuse(node, key, fmt::format("a value cannot be drawn by '{}'", kind), fix);
  result.kind = kind == "choice"    ? Draw::Kind::choice
                : kind == "uniform" ? Draw::Kind::uniform
                                    : Draw::Kind::log_uniform;
  return result;
}

void AxesReader::draw_ends(const std::string& kind, const toml::node& ends, const std::string& fix,
                           Draw& draw) const {
  const toml::array& both = source_.list(ends, draw.key, fix);
  if (both.size() != 2)
    source_.refuse(ends, draw.key,
                   fmt::format("{} has {} ends of a range, not two", draw.key, both.size()), fix);
  draw.low = source_.number(both[0], draw.key, fix);
  draw.high = source_.number(both[1], draw.key, fix);
  draw.whole = both[0].is_integer() && both[1].is_integer();
  if (!(draw.low < draw.high) || (kind == "log_uniform" && !(draw.low > 0)))
    source_.refuse(ends, draw.key, fmt::format("{} is no range to draw from", node_text(ends)),
                   kind == "uniform" ? "LOW below HIGH" : "LOW above 0 and below HIGH");
  for (const toml::node& end : both) setting(draw.key, end);
}

void AxesReader::seeds(const toml::node& node) {
  for (const toml::node& seed : values("seeds", node))
    spec_.seeds.push_back(std::stoll(setting("run.seed", seed)));
  once("run.seed", node);
  if (std::set(spec_.seeds.begin(), spec_.seeds.end()).size() != spec_.seeds.size())
    source_.refuse(node, "seeds", "a seed is there twice", "different seeds");
}

void AxesReader::finish() const {
  for (const auto& [key, value] : spec_.set)
    if (varied_.contains(key))
      throw_input(fmt::format("{} is set for all trials and varies as well", key), source_.name(),
                  fmt::format("{} in [set], or as an axis", key));
  if (method_of(spec_.search).proposes() && !varied_.empty())
    throw_input(fmt::format("{} varies here, but the sampler says what varies", *varied_.begin()),
                source_.name(),
                fmt::format("no axes and seeds beside method = \"{}\"", spec_.search.method));
  double count = std::max(1, spec_.random.trials);
  for (const Axis& axis : spec_.axes) count *= static_cast<double>(axis.values.size());
  count *= static_cast<double>(std::max<std::size_t>(1, spec_.seeds.size()));
  if (count > kMostTrials)
    throw_input(fmt::format("the study has {:.0f} trials", count), source_.name(),
                fmt::format("at most {}: [random] draws some of them", kMostTrials));
}

void AxesReader::config_keys(const toml::node& node, const std::string& section, const Take& take,
                             const std::set<std::string>& others) const {
  const std::string fix = fmt::format("[{}] and lines of KEY = VALUE", section);
  keys_below(source_.table(node, section, fix), "", take, others);
}

void AxesReader::keys_below(const toml::table& table, const std::string& path, const Take& take,
                            const std::set<std::string>& others) const {
  for (const TomlMember& member : in_order(table)) {
    const toml::node& value = *member.value;
    if (others.contains(member.key)) continue;
    const std::string key = path.empty() ? member.key : path + "." + member.key;
    if (key == kRanksKey || find_key(key) != nullptr)
      take(key, value);
    else if (value.is_table() && !value.as_table()->empty() && path.empty() && is_section(key))
      keys_below(*value.as_table(), key, take, {});
    else if (constexpr std::array<std::string_view, 1> kOwn = {kRanksKey};
             path.empty() && !nearest_word(key, kOwn).empty())
      source_.refuse(value, key, fmt::format("unknown key {}", key), kRanksKey);
    else
      unknown_key(key, source_.place(value, key));
  }
}

std::string AxesReader::setting(const std::string& key, const toml::node& node) const {
  if (is_studys_own(key))
    source_.refuse(node, key, fmt::format("{} is the study's own", key),
                   "each trial has a directory of its own in the study's folder");
  if (key == kRanksKey) return std::to_string(source_.whole(node, key, 1, kMostTrialRanks));
  RunConfig scratch;
  assign_key(key, node, source_, scratch);
  return set_text(node);
}

const toml::array& AxesReader::values(const std::string& key, const toml::node& node) const {
  const std::string fix = fmt::format("{} = [VALUE, VALUE, ...]", key);
  if (!node.is_array()) source_.refuse(node, key, fmt::format("{} is no list of values", key), fix);
  if (node.as_array()->empty())
    source_.refuse(node, key, fmt::format("the axis {} has no values", key), fix);
  return *node.as_array();
}

void AxesReader::once(const std::string& key, const toml::node& node) {
  if (!varied_.insert(key).second)
    source_.refuse(node, key, fmt::format("{} varies twice", key), "one axis for each key");
}

}  // namespace concertina
