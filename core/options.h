// Options of a registry entry: a policy, a model family, an optimizer, a data format. They become
// config keys.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"

namespace concertina {

using OptionValue = std::variant<std::int64_t, double, std::string, std::vector<std::string>, bool,
                                 std::vector<double>>;
/// Values of options, by name.
using OptionValues = std::map<std::string, OptionValue, std::less<>>;

struct Option {
  std::string_view name;
  OptionValue default_value;  // the default, which also determines the type
  std::string_view help;
  double low = -std::numeric_limits<double>::infinity();  // numbers only; bounds are inclusive
  double high = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices{};  // strings only; empty: any text
  bool above_low = false;                   // excludes `low` itself
  bool only_checks = false;  // restricts the accepted input, but does not affect results
};

/// Returns an option with a fixed set of values.
inline Option choice(std::string_view name, std::string_view default_value, std::string_view help,
                     std::vector<std::string_view> words) {
  return {.name = name,
          .default_value = std::string(default_value),
          .help = help,
          .choices = std::move(words)};
}

/// Returns the value of an option, which must exist and have this type.
template <class T>
const T& option(const OptionValues& options, std::string_view name) {
  const auto found = options.find(name);
  CONCERTINA_CHECK(found != options.end(), "unknown option {}", name);
  return std::get<T>(found->second);
}

/// Adds the default of each option that is not in `set`.
inline OptionValues with_defaults(const std::vector<Option>& declared, OptionValues set = {}) {
  for (const Option& one : declared) set.emplace(std::string(one.name), one.default_value);
  return set;
}

/// Returns the options of several lists, in order.
inline std::vector<Option> joined(std::initializer_list<std::vector<Option>> lists) {
  std::vector<Option> all;
  for (const std::vector<Option>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace concertina
