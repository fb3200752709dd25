#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/planning.h"
#include "experiments/study/sampler.h"
#include "experiments/study/study_spec.h"
#include "io/sha256.h"

namespace concertina {
namespace {

/// A number in [0, 1), the same on every machine, unlike the standard library's distributions.
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

std::string value_of(const Draw& draw, double share) {
  if (draw.kind == Draw::Kind::choice)
    return draw.choices[static_cast<std::size_t>(share * static_cast<double>(draw.choices.size()))];
  const double room = draw.whole ? 1 : 0;  // makes each integer equally likely
  double value = 0;
  if (draw.kind == Draw::Kind::uniform) {
    value = draw.low + share * (draw.high + room - draw.low);
  } else {
    const double low = std::log(draw.low), high = std::log(draw.high + room);
    value = std::exp(low + share * (high - low));
  }
  if (draw.whole) return fmt::format("{:.0f}", std::clamp(std::floor(value), draw.low, draw.high));
  // Short, but with enough digits that draws do not coincide: equal draws would count as repeats.
  return to_toml(std::clamp(std::stod(fmt::format("{:.8g}", value)), draw.low, draw.high));
}

std::vector<Settings> draws_of(const RandomAxes& axes) {
  if (axes.draws.empty()) return {{}};
  std::mt19937_64 random(static_cast<std::uint64_t>(axes.seed));
  std::vector<Settings> all(static_cast<std::size_t>(axes.trials));
  for (Settings& settings : all)
    for (const Draw& draw : axes.draws)
      settings.emplace_back(draw.key, value_of(draw, uniform(random)));
  return all;
}

/// Each of `before` combined with each value of `axis`.
std::vector<Settings> crossed(const std::vector<Settings>& before, const Axis& axis) {
  std::vector<Settings> all;
  for (const Settings& settings : before)
    for (const Settings& values : axis.values) {
      all.push_back(settings);
      all.back().insert(all.back().end(), values.begin(), values.end());
    }
  return all;
}

/// The settings of all trials as if the study had never been extended.
std::vector<Settings> at_once(const StudySpec& spec) {
  std::vector<Settings> configs = draws_of(spec.random);
  for (const Axis& axis : spec.axes) configs = crossed(configs, axis);
  if (spec.seeds.empty()) return configs;
  std::vector<Settings> all;
  for (const std::int64_t seed : spec.seeds)
    for (const Settings& config : configs) {
      all.push_back(config);
      all.back().emplace_back("run.seed", std::to_string(seed));
    }
  return all;
}

std::vector<std::int64_t> shape_of(const StudySpec& spec) {
  std::vector<std::int64_t> shape = {spec.random.trials};
  for (const Axis& axis : spec.axes) shape.push_back(std::ssize(axis.values));
  shape.push_back(std::ssize(spec.seeds));
  return shape;
}

/// The study reduced to this earlier shape, which is not larger.
StudySpec cut_to(StudySpec spec, const std::vector<std::int64_t>& shape) {
  spec.random.trials = static_cast<int>(shape.front());
  for (std::size_t a = 0; a < spec.axes.size(); ++a)
    spec.axes[a].values.resize(static_cast<std::size_t>(shape[a + 1]));
  spec.seeds.resize(static_cast<std::size_t>(shape.back()));
  return spec;
}

/// A value's text with the trial's seed inserted.
std::string with_seed(std::string value, const Settings& settings) {
  const auto seed = std::ranges::find(settings, "run.seed", &Settings::value_type::first);
  for (std::size_t at = 0;
       seed != settings.end() && (at = value.find(kSeedWord, at)) != std::string::npos;
       at += seed->second.size())
    value.replace(at, std::string_view(kSeedWord).size(), seed->second);
  return value;
}

bool same_bases(const StudySpec& a, const StudySpec& b) {
  return std::ranges::equal(a.bases, b.bases, {}, &BaseFile::text, &BaseFile::text);
}

}  // namespace

std::string study_difference(const StudySpec& before, const StudySpec& now) {
  if (!same_bases(before, now)) return "a base config differs";
  if (before.set != now.set) return "[set] differs";
  SearchSection search = before.search;
  const std::string program(method_of(now.search).program);  // not part of its identity
  if (search.options.contains(program) && now.search.options.contains(program))
    search.options[program] = now.search.options.at(program);
  if (search != now.search) return "[search] differs";
  if (before.stop != now.stop) return "[stop] differs";
  if (before.claim != now.claim)
    return "[equivalence] differs, but a margin must be chosen before the launch";
  const std::vector<Trial> first = trials_of(before), all = trials_of(now);
  const bool begins =
      first.size() <= all.size() &&
      std::equal(first.begin(), first.end(), all.begin(),
                 [](const Trial& a, const Trial& b) { return a.settings == b.settings; });
  if (begins) return {};
  if (before.random != now.random) return "[random] differs";
  return before.axes == now.axes ? "seeds differ" : "[grid], [[zip]] or [[arm]] differs";
}

StudySpec grown_from(const StudySpec& before, StudySpec now) {
  const std::vector<std::int64_t> was = shape_of(before), is = shape_of(now);
  if (!std::ranges::equal(was, is, std::less_equal())) return now;
  now.grown = before.grown;
  if (study_difference(before, now).empty()) return now;
  now.grown.push_back(was);
  if (!study_difference(before, now).empty()) now.grown = before.grown;
  return now;
}

std::string grown_text(const StudySpec& spec) {
  std::vector<std::string> shapes;
  for (const auto& shape : spec.grown)
    shapes.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
  if (shapes.empty()) return {};
  return fmt::format(
      "\n# numbers of [random] trials, of values of each axis and of seeds before each extension\n"
      "[grown]\nfrom = [{}]\n",
      fmt::join(shapes, ", "));
}

std::string study_digest(const StudySpec& spec) {
  std::string text;
  for (const BaseFile& base : spec.bases)
    text += fmt::format("{} {}\n", base.text.size(), base.text);
  for (const auto& [key, value] : spec.set)
    text += fmt::format("{} {} {}\n", key, value.size(), value);
  return sha256_hex(text);
}

std::vector<std::string> axes_of(const StudySpec& spec) {
  std::vector<std::string> keys;
  for (const Draw& draw : spec.random.draws) keys.push_back(draw.key);
  for (const Axis& axis : spec.axes) keys.insert(keys.end(), axis.keys.begin(), axis.keys.end());
  if (!spec.seeds.empty()) keys.emplace_back("run.seed");
  return keys;
}

std::vector<Trial> trials_of(const StudySpec& spec) {
  std::vector<Settings> all = at_once(spec);
  if (!spec.grown.empty()) {
    std::vector<Settings> ordered;
    std::set<Settings> there;
    const auto add = [&](std::vector<Settings> some) {
      for (Settings& settings : some)
        if (there.insert(settings).second) ordered.push_back(std::move(settings));
    };
    for (const auto& shape : spec.grown) add(at_once(cut_to(spec, shape)));
    add(std::move(all));
    all = std::move(ordered);
  }
  std::vector<Trial> trials;
  for (Settings& settings : all)
    trials.push_back({static_cast<int>(trials.size()) + 1, std::move(settings)});
  return trials;
}

RunConfig config_of(const StudySpec& spec, const Settings& settings) {
  RunConfig config;
  for (const BaseFile& base : spec.bases) read_config(base.text, base.path, config);
  config.generate.tokens = 0;  // a trial's text is rarely useful, but a study may request it
  for (const Settings* some : {&spec.set, &settings})
    for (const auto& [key, value] : *some)
      if (key != kRanksKey && key != kArmKey)
        set_config(key + "=" + with_seed(value, settings), config);
  return config;
}

bool is_studys_own(std::string_view key) {
  return role_of(key) == KeyRole::run_name || role_of(key) == KeyRole::run_place;
}

int ranks_of(const StudySpec& spec, const Settings& settings, const RunConfig& config) {
  for (const auto& [key, value] : settings)
    if (key == kRanksKey) return std::stoi(value);
  return spec.launch.ranks > 0 ? spec.launch.ranks : ranks_asked(request_of(config, 1));
}

}  // namespace concertina
