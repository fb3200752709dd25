#include "io/labelled/table_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {
namespace {

using TextNames = std::array<std::string_view, 2>;  // empty second name: no pair

// In order: RTE, WNLI, MNLI and STS-B; QQP; MRPC; QNLI; other pair datasets; SST-2 and CoLA.
constexpr TextNames kTextNames[] = {{"sentence1", "sentence2"},
                                    {"question1", "question2"},
                                    {"#1 String", "#2 String"},
                                    {"question", "sentence"},
                                    {"premise", "hypothesis"},
                                    {"sentence", ""},
                                    {"text", ""},
                                    {"sentence1", ""}};
// Most tasks; MNLI; QQP; MRPC; STS-B.
constexpr std::string_view kLabelNames[] = {"label", "gold_label", "is_duplicate", "Quality",
                                            "score"};

std::string shown(std::string_view name) {
  return escape_bytes(name.substr(0, 60));
}

std::string list_of(std::span<const std::string> names) {
  constexpr std::size_t kShown = 20;
  std::vector<std::string> all;
  for (const std::string& name : names.first(std::min(names.size(), kShown)))
    all.push_back(shown(name));
  return fmt::format("{}{}", fmt::join(all, ", "), names.size() > kShown ? ", ..." : "");
}

/// Returns the index of a column, or nothing if no column has that name.
std::optional<std::size_t> place_of(std::span<const std::string> names, std::string_view name,
                                    const std::string& where) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  if (std::find(found + 1, names.end(), name) != names.end())
    throw_input(fmt::format("duplicate column '{}'", shown(name)), where, "use each name once");
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t column_of_key(std::span<const std::string> names, const std::string& name,
                          const std::string& key, const std::string& where) {
  const auto place = place_of(names, name, where);
  if (!place)
    throw_input(fmt::format("no column named '{}', as set in {}", shown(name), key), where,
                fmt::format("set {} to one of: {}", key, list_of(names)));
  return *place;
}

bool has_all(std::span<const std::string> names, const TextNames& wanted) {
  return std::ranges::all_of(wanted, [&](std::string_view name) {
    return name.empty() || std::ranges::find(names, name) != names.end();
  });
}

/// Whether all names in `part` are also in `whole`.
bool is_within(const TextNames& part, const TextNames& whole) {
  return part != whole && std::ranges::all_of(part, [&](std::string_view name) {
           return name.empty() || std::ranges::find(whole, name) != whole.end();
         });
}

std::vector<std::string> default_text(std::span<const std::string> names,
                                      const std::string& where) {
  std::vector<TextNames> found;
  for (const TextNames& wanted : kTextNames)
    if (has_all(names, wanted) && std::ranges::none_of(found, [&](const TextNames& other) {
          return is_within(wanted, other);
        }))
      found.push_back(wanted);
  if (found.size() != 1)
    throw_input(
        found.empty()
            ? std::string("cannot identify the sentence column")
            : fmt::format("both '{}' and '{}' could be the sentence", found[0][0], found[1][0]),
        where,
        fmt::format("use a column named sentence (or text; sentence1, sentence2 for pairs), or "
                    "data.text_columns = one or two of: {}",
                    list_of(names)));
  std::vector<std::string> text(found[0].begin(), found[0].end());
  std::erase(text, "");
  return text;
}

/// Returns the label column; empty if there is none and none is needed.
std::string default_label(std::span<const std::string> names, const std::string& where,
                          bool needed) {
  std::vector<std::string_view> found;
  for (const std::string_view name : kLabelNames)
    if (std::ranges::find(names, name) != names.end()) found.push_back(name);
  if (found.size() != 1 && !needed) return "";
  if (found.size() != 1)
    throw_input(
        found.empty() ? std::string("no column named 'label'")
                      : fmt::format("both '{}' and '{}' could be the label", found[0], found[1]),
        where,
        fmt::format("use a column named label, or data.label_column = one of: {}", list_of(names)));
  return std::string(found[0]);
}

}  // namespace

TableColumns find_columns(std::span<const std::string> names, const std::vector<std::string>& text,
                          const std::string& label, const std::string& where, bool needs_label) {
  TableColumns columns;
  if (text.size() > 2)
    throw_input(fmt::format("got {} text columns", text.size()), "data.text_columns",
                "use one column, or two for a pair");
  const std::vector<std::string> texts = text.empty() ? default_text(names, where) : text;
  for (const std::string& name : texts)
    columns.text.push_back(column_of_key(names, name, "data.text_columns", where));
  const std::string own = label.empty() ? default_label(names, where, needs_label) : label;
  if (!own.empty()) columns.label = column_of_key(names, own, "data.label_column", where);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i != columns.label && std::ranges::find(columns.text, i) == columns.text.end())
      columns.ignored.push_back(names[i]);
  return columns;
}

}  // namespace concertina
