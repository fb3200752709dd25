#include "experiments/config/config_overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <vector>

#include "core/error.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

constexpr std::array kShapeKeys = {"parallel.pp", "parallel.dp", "parallel.chunks",
                                   "parallel.spare", "parallel.layout"};

/// Splits "a.b=1 a.c=[1, 2]" into "a.b=1" and "a.c=[1, 2]"; a value extends to the next key.
std::vector<std::string> split_assignments(const std::string& keys, const std::string& place) {
  static const std::regex start(R"((^|\s)[a-z_]+\.[a-z_]+=)");
  std::vector<std::size_t> begins;
  for (std::sregex_iterator it(keys.begin(), keys.end(), start), end; it != end; ++it) {
    const auto begin = static_cast<std::size_t>(it->position());
    begins.push_back(keys.find_first_not_of(" \t\n", begin));
  }
  if (begins.empty() || keys.find_first_not_of(" \t\n") != begins.front())
    throw_input(fmt::format("'{}' is not a list of TABLE.KEY=VALUE", keys), place,
                fmt::format("{} \"parallel.pp=1 parallel.dp=2\"", place));
  std::vector<std::string> assignments;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : keys.size();
    std::string one = keys.substr(begins[i], end - begins[i]);
    one.erase(one.find_last_not_of(" \t\n") + 1);
    assignments.push_back(std::move(one));
  }
  return assignments;
}

void require_layout_key(const std::string& key, const std::string& place) {
  const bool of_layout =
      (key.starts_with("parallel.") && key != "parallel.transport") || key == "freeze.units";
  if (!of_layout)
    throw_input(fmt::format("{} cannot be changed during a run", key), place,
                "keys of [parallel] except transport, or freeze.units");
}

}  // namespace

RunConfig with_layout_keys(RunConfig config, const std::string& keys, const std::string& place) {
  const std::vector<std::string> assignments = split_assignments(keys, place);
  bool shaped = false;
  for (const std::string& one : assignments) {
    const std::string key = one.substr(0, one.find('='));
    require_layout_key(key, place);
    shaped = shaped || std::ranges::find(kShapeKeys, key) != kShapeKeys.end();
  }
  if (shaped) {
    ParallelSection& parallel = config.parallel;
    parallel.pp = parallel.dp = parallel.chunks = parallel.spare = 0;
    parallel.layout = {};
  }
  for (const std::string& one : assignments) set_config(one, config);
  validate(config);
  return config;
}

}  // namespace concertina
