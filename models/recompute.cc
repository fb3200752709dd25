#include "models/recompute.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "core/error.h"
#include "core/index.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

constexpr std::string_view kKey = "parallel.recompute";

/// Returns "attention" for "003.attention".
std::string_view kind_of(const UnitSpec& unit) {
  const std::string_view name = unit.name;
  return name.substr(name.find('.') + 1);
}

bool can_recompute(const UnitSpec& unit) {
  return unit.cost.recompute_flops > 0;
}

struct UnitNumbers {
  int first = 0, last = 0;  // both inclusive
};

/// Parses "3" or "4-7"; returns nullopt for anything else.
std::optional<UnitNumbers> numbers(std::string_view word) {
  const std::size_t dash = word.find('-');
  const auto first = parse_number<int>(word.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : parse_number<int>(word.substr(dash + 1));
  if (!first || !last || *last < 0) return {};
  return UnitNumbers{*first, *last};
}

[[noreturn]] void refuse(const ModelSpec& model, const std::string& what) {
  throw_input(what, std::string(kKey),
              fmt::format("one of: {}; or unit numbers, such as \"1\" or \"1-4\", out of {} units, "
                          "except the first and the last",
                          fmt::join(recompute_words(model), ", "), model.units.size()));
}

void choose_numbers(ModelSpec& model, const UnitNumbers& range, const std::string& word) {
  if (range.first > range.last || range.last >= std::ssize(model.units))
    refuse(model, fmt::format("unknown unit {}", word));
  for (int u = range.first; u <= range.last; ++u) {
    UnitSpec& unit = model.units[at(u)];
    if (!can_recompute(unit))
      refuse(model,
             fmt::format("unit {} ({}) saves nothing that could be recomputed", u, unit.name));
    unit.recompute = true;
  }
}

}  // namespace

void choose_recompute(ModelSpec& model, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (const auto range = numbers(word)) {
      choose_numbers(model, *range, word);
      continue;
    }
    bool any = false;
    for (UnitSpec& unit : model.units) {
      if (!can_recompute(unit) || (word != "full" && kind_of(unit) != word)) continue;
      unit.recompute = any = true;
    }
    if (!any) refuse(model, fmt::format("'{}' matches no unit that can be recomputed", word));
  }
}

std::vector<std::string> recompute_words(const ModelSpec& model) {
  std::set<std::string> kinds;
  for (const UnitSpec& unit : model.units)
    if (can_recompute(unit)) kinds.emplace(kind_of(unit));
  std::vector<std::string> words(kinds.begin(), kinds.end());
  if (!words.empty()) words.emplace_back("full");
  return words;
}

}  // namespace concertina
