// Lookup by name in a table that Meson generates from a list of files.
// Invariant: no static initializers. An unknown name is an error that lists the valid ones.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text/nearest.h"

namespace concertina {

template <class T>
struct Entry {
  std::string_view name;
  T value;
};

template <class T>
std::vector<std::string_view> names_of(std::span<const Entry<T>> table) {
  std::vector<std::string_view> names;
  for (const Entry<T>& entry : table) names.push_back(entry.name);
  return names;
}

/// `kind` and `where` appear in the error, for example "schedule" and "parallel.schedule".
template <class T>
const Entry<T>& lookup_entry(std::span<const Entry<T>> table, std::string_view name,
                             std::string_view kind, std::string_view where) {
  for (const Entry<T>& entry : table)
    if (entry.name == name) return entry;
  const auto names = names_of(table);
  throw_input(fmt::format("unknown {} '{}'", kind, name), std::string(where),
              one_of(nearest_word(name, names), names));
}

template <class T>
const T& lookup(std::span<const Entry<T>> table, std::string_view name, std::string_view kind,
                std::string_view where) {
  return lookup_entry(table, name, kind, where).value;
}

}  // namespace concertina
