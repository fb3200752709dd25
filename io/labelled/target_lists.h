// Targets in table cells that are not a single class: scores, or a list of classes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/tables/table.h"

namespace concertina {

/// Numbers per row, for a scores_field().
struct ScoreRows {
  std::vector<float> values{};  // [rows, each]
  std::int64_t each = 0;
  std::vector<std::string> names{};  // class of each column
};

using RowPlace = std::function<std::string(std::size_t row)>;

/// Returns the trimmed entries of a list: a JSON list, possibly in a string ("[1, 2]"), or text
/// split at `separator` (none for empty text). Throws Error{bad_input} with `place` if the cell is
/// missing, the list has elements other than text and numbers, or an entry is empty.
std::vector<std::string> list_entries(const CellText& cell, std::string_view separator,
                                      const std::string& place);

/// Reads one or more scores per cell. Throws Error{bad_input} naming the row if it has none, or not
/// as many as the first row, or one is not a finite 32-bit number.
ScoreRows read_scores(std::span<const CellText> cells, std::string_view separator,
                      const RowPlace& place_of);

/// Returns rows with 1 for each class listed in the cell and 0 for other classes. Classes are
/// numbered by number_classes(), with `order` if given. Throws like that function, and for a
/// duplicate class in a cell.
ScoreRows read_label_sets(std::span<const CellText> cells, std::string_view separator,
                          const RowPlace& place_of, std::span<const std::string> order = {});

}  // namespace concertina
