// Knobs that an entry of a registry has for itself: a policy, a model family, an optimizer. They
// become keys of the config; nobody else knows their names.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"

namespace concertina {

using OptionValue = std::variant<std::int64_t, double, std::string, std::vector<std::string>, bool>;
/// Values of options, by name.
using OptionValues = std::map<std::string, OptionValue, std::less<>>;

struct Option {
  std::string_view name;
  OptionValue usual;  // its default, which says the type too
  std::string_view help;
  double low = -std::numeric_limits<double>::infinity();  // numbers only; both ends included
  double high = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices{};  // strings only; empty: any text
};

/// The value of an option, which is there and of this type: an entry asks for its own.
template <class T>
const T& option(const OptionValues& options, std::string_view name) {
  const auto found = options.find(name);
  CONCERTINA_CHECK(found != options.end(), "there is no option {}", name);
  return std::get<T>(found->second);
}

/// Its default for each option that is not among `set`.
inline OptionValues with_usual(const std::vector<Option>& declared, OptionValues set = {}) {
  for (const Option& one : declared) set.emplace(std::string(one.name), one.usual);
  return set;
}

}  // namespace concertina
