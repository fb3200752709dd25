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
  static const std::regex around(R"(^\s+|\s+$)"), key(R"([a-z_]+\.[a-z_]+=)"),
      between(R"(\s+(?=[a-z_]+\.[a-z_]+=))");
  const std::string text = std::regex_replace(keys, around, "");
  if (!std::regex_search(text, key, std::regex_constants::match_continuous))
    throw_input(fmt::format("'{}' is not a list of TABLE.KEY=VALUE", keys), place,
                fmt::format("{} \"parallel.pp=1 parallel.dp=2\"", place));
  return {std::sregex_token_iterator(text.begin(), text.end(), between, -1),
          std::sregex_token_iterator()};
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
