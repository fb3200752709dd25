// What cells of a table say of a sample's target where that is not one class: scores, or a list of
// classes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/tables/table.h"

namespace concertina {

/// Numbers per row, as a scores_field() has them.
struct ScoreRows {
  std::vector<float> values{};  // [rows, each]
  std::int64_t each = 0;
  std::vector<std::string> names{};  // of the classes that columns are
};

using RowPlace = std::function<std::string(std::size_t row)>;

/// The entries of a list: of JSON's, which a text may be too ("[1, 2]"), or of a text between
/// `separator`s, without space around each; none of an empty text. Input errors, at `place`: the
/// cell is missing; no list of texts and numbers; an empty entry.
std::vector<std::string> list_entries(const CellText& cell, std::string_view separator,
                                      const std::string& place);

/// As many scores in each cell, one or several. Input errors, with the row's place: none, another
/// number of them, what is no finite number of 32 bits.
ScoreRows read_scores(std::span<const CellText> cells, std::string_view separator,
                      const RowPlace& place_of);

/// 1 for each class that a cell lists, else 0; classes are numbered as number_classes() does it, by
/// `order` if there is one.
/// Input errors: as of that; a class that a cell lists twice.
ScoreRows read_label_sets(std::span<const CellText> cells, std::string_view separator,
                          const RowPlace& place_of, std::span<const std::string> order = {});

}  // namespace concertina
