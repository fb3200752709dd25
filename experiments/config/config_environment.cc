#include "experiments/config/config_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

constexpr std::string_view kVariablePrefix = "CONCERTINA__";
constexpr std::string_view kPlace = "environment variable ";

std::string changed(std::string_view text, int (*change)(int)) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [&](char c) {
    return static_cast<char>(change(static_cast<unsigned char>(c)));
  });
  return result;
}

/// Returns "CONCERTINA__LR__ONE_CYCLE__DIV" for "lr.one-cycle.div".
std::string variable_of(std::string_view key) {
  std::string name(kVariablePrefix);
  for (const char c : key) name += c == '.' ? "__" : std::string(1, c == '-' ? '_' : c);
  return changed(name, std::toupper);
}

/// The key that a variable name requests, with dots.
std::string asked_key(std::string_view variable) {
  std::string key = changed(variable.substr(kVariablePrefix.size()), std::tolower);
  for (std::size_t at = 0; (at = key.find("__", at)) != std::string::npos;) key.replace(at, 2, ".");
  return key;
}

const Key& key_of(const std::string& variable) {
  const std::string wanted = changed(variable, std::toupper);
  for (const Key& key : config_keys())
    if (variable_of(key.name) == wanted) return key;
  const std::string asked = asked_key(variable), nearest = nearest_key(asked);
  throw_input(fmt::format("there is no config key '{}'", asked), std::string(kPlace) + variable,
              nearest.empty() ? "a key that --help-config prints, with two underscores for the dot"
                              : fmt::format("{} (for {})", variable_of(nearest), nearest));
}

}  // namespace

bool names_key(std::string_view variable) {
  return changed(variable.substr(0, kVariablePrefix.size()), std::toupper) == kVariablePrefix;
}

Variables environment_variables() {
  Variables all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && names_key(text.substr(0, equals)))
      all.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::ranges::sort(all);
  return all;
}

void read_environment(const Variables& variables, RunConfig& config) {
  std::map<std::string_view, std::string> seen;
  for (const auto& [variable, value] : variables) {
    const Key& key = key_of(variable);
    const auto [other, is_new] = seen.emplace(key.name, variable);
    if (!is_new)
      throw_input(fmt::format("{} and {} both set {}", other->second, variable, key.name),
                  std::string(kPlace) + variable, "set only one of them");
    set_key(std::string(key.name), value, std::string(kPlace) + variable, config);
  }
}

Variables from_environment(const RunConfig& config) {
  Variables all;
  for (const auto& [key, origin] : config.origins)
    if (origin.starts_with(kPlace))
      all.emplace_back(origin.substr(kPlace.size()), value_text(*find_key(key), config));
  return all;
}

}  // namespace concertina
