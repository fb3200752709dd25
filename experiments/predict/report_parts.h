// Parts shared by several reports: JSON as arguments to fmt::format, lines of ranks, links and
// bubbles. A report is the JSON that a command prints with --json; its text is formatted from that
// value. Invariant: pure.
#pragma once

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/layout.h"
#include "parallel/simulate/timeline.h"

/// Formats numbers and texts as usual, and null (unknown) as "-".
template <>
struct fmt::formatter<nlohmann::ordered_json> {
  constexpr auto parse(fmt::format_parse_context& context) {
    const std::string_view rest(context.begin(), context.end());
    spec_ = rest.substr(0, rest.find('}'));
    return context.begin() + spec_.size();
  }
  auto format(const nlohmann::ordered_json& value, fmt::format_context& context) const {
    if (value.is_string()) return write(context, spec_, value.get_ref<const std::string&>());
    if (value.is_number_unsigned()) return write(context, spec_, value.get<std::uint64_t>());
    if (value.is_number_integer()) return write(context, spec_, value.get<std::int64_t>());
    if (value.is_number()) return write(context, spec_, value.get<double>());
    return write(context, spec_.substr(0, spec_.find_first_not_of("<>0123456789")),
                 value.is_null() ? "-" : value.dump());
  }

 private:
  template <class T>
  static fmt::appender write(fmt::format_context& context, std::string_view spec, const T& value) {
    return fmt::format_to(context.out(), fmt::runtime(fmt::format("{{:{}}}", spec)), value);
  }
  std::string_view spec_;
};

namespace concertina {

/// Returns "3", "0-7" or "0,32,...,480"; `numbers` must be in ascending order.
std::string list_text(const std::vector<int>& numbers);

/// Merges table lines that differ only in their ranks, ordered by their first rank.
class RankLines {
 public:
  /// Ranks must be added in ascending order.
  void add(int rank, const std::string& line);
  /// The ranks, 16 columns wide, followed by the line.
  std::string text() const;

 private:
  std::map<std::string, std::size_t> index_;  // index of a line in the following vectors
  std::vector<std::vector<int>> ranks_;
  std::vector<const std::string*> lines_;  // keys of index_
};

/// The source of links: a run that measured them, a machine file, or none (empty name).
struct LinkSource {
  std::string name{};
  bool run = false;
};

/// Keys: from (a name or null), free (whether any communicating ranks of `layout` have free
/// transfers), text (the same information in one human-readable line).
nlohmann::ordered_json links_json(const LinkSource& source, const Layout& layout,
                                  const Costs& costs);

/// Each definition of "bubble" by name: {value, formula, source}.
nlohmann::ordered_json definitions_json(const Plan& plan, const Timeline& timeline);

}  // namespace concertina
