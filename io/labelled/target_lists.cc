#include "io/labelled/target_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/model/batch.h"
#include "core/text/number_text.h"
#include "io/datasets/class_labels.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

constexpr std::size_t kMostValues = std::size_t{1} << 28;
constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::vector<std::string> json_entries(std::string_view text, const std::string& place) {
  const auto refuse = [&] {
    throw_input(fmt::format("'{}' is not a list of strings or numbers", text.substr(0, 60)), place,
                "use a JSON list such as [\"a\", \"b\"]");
  };
  const auto list = parse_json(text);
  if (!list.is_array()) refuse();
  std::vector<std::string> entries;
  for (const nlohmann::json& one : list) {
    if (!one.is_string() && !one.is_number()) refuse();
    entries.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return entries;
}

float score_of(std::string_view text, const std::string& place) {
  const auto score = static_cast<float>(parse_number<double>(text).value_or(std::nan("")));
  if (!std::isfinite(score) || score == kNoScore)
    throw_input(fmt::format("the score '{}' is not a finite 32-bit number", text.substr(0, 60)),
                place, "use a number such as 3.8");
  return score;
}

}  // namespace

std::vector<std::string> list_entries(const CellText& cell, std::string_view separator,
                                      const std::string& place) {
  if (cell.kind == CellText::Kind::missing)
    throw_input("the label is missing", place, "add a label to each row");
  std::string_view rest = trimmed(cell.text);
  std::vector<std::string> entries;
  if (cell.kind == CellText::Kind::nested || rest.starts_with('[')) {
    entries = json_entries(rest, place);
  } else if (!rest.empty()) {
    for (std::size_t at = 0; at != std::string_view::npos;) {
      at = rest.find(separator);
      entries.emplace_back(trimmed(rest.substr(0, at)));
      if (at != std::string_view::npos) rest.remove_prefix(at + separator.size());
    }
  }
  for (const std::string& entry : entries)
    if (entry.empty())
      throw_input("empty list entry", place,
                  fmt::format("use entries separated by '{}' (data.label_separator)", separator));
  return entries;
}

ScoreRows read_scores(std::span<const CellText> cells, std::string_view separator,
                      const RowPlace& place_of) {
  ScoreRows rows;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const std::string place = place_of(row);
    const std::vector<std::string> entries = list_entries(cells[row], separator, place);
    if (entries.empty()) throw_input("the score is missing", place, "add a number to each row");
    if (row == 0) rows.each = std::ssize(entries);
    if (std::ssize(entries) != rows.each)
      throw_input(fmt::format("got {} scores, but the first row has {}", entries.size(), rows.each),
                  place, "use the same number of scores in each row");
    for (const std::string& entry : entries) rows.values.push_back(score_of(entry, place));
  }
  return rows;
}

ScoreRows read_label_sets(std::span<const CellText> cells, std::string_view separator,
                          const RowPlace& place_of, std::span<const std::string> order) {
  std::vector<std::string> entries;
  std::vector<std::size_t> rows;  // row of each entry
  for (std::size_t row = 0; row < cells.size(); ++row) {
    for (std::string& entry : list_entries(cells[row], separator, place_of(row)))
      entries.push_back(std::move(entry));
    rows.resize(entries.size(), row);
  }
  ClassLabels classes = number_classes(
      std::vector<std::string_view>(entries.begin(), entries.end()),
      [&](std::size_t entry) { return place_of(rows[entry]); }, order);
  ScoreRows sets{.each = std::ssize(classes.names), .names = std::move(classes.names)};
  if (cells.size() > kMostValues / std::max<std::size_t>(1, sets.names.size()))
    throw_input(fmt::format("too many rows and classes: {} x {}", cells.size(), sets.names.size()),
                place_of(0), "check that data.label_column is the label column");
  sets.values.resize(cells.size() * sets.names.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    float& value =
        sets.values[rows[i] * sets.names.size() + static_cast<std::size_t>(classes.numbers[i])];
    if (value > 0)
      throw_input(fmt::format("duplicate label '{}'", entries[i].substr(0, 60)), place_of(rows[i]),
                  "list each class of a row once, by name or number");
    value = 1;
  }
  return sets;
}

}  // namespace concertina
