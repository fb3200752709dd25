#include "io/tables/delimited_table.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace concertina {
namespace {

/// CoLA (Warstadt et al., 2018) has no header. Its rows are: source, 0 or 1, an optional mark, the
/// sentence.
bool is_cola(const std::vector<std::string_view>& cells) {
  return cells.size() == 4 && (cells[1] == "0" || cells[1] == "1") &&
         (cells[2].empty() || cells[2] == "*");
}

}  // namespace

void DelimitedTable::refuse(const std::string& what, std::size_t line,
                            const std::string& fix) const {
  throw_input(what, fmt::format("{}:{}", path_, line), fix);
}

void DelimitedTable::begin(bool header) {
  if (!read_record(cells_, first_))
    refuse("the file is empty", 1, "add a line of column names, and rows below it");
  if (header && is_cola(cells_)) {
    columns_ = {"source", "label", "mark", "sentence"};
    header = false;
  } else if (header) {
    columns_.assign(cells_.begin(), cells_.end());
  } else {
    for (std::size_t i = 1; i <= cells_.size(); ++i) columns_.push_back(std::to_string(i));
  }
  waits_ = !header;
  if (header) head_ = first_.raw;
  selected_.resize(columns_.size());
  std::iota(selected_.begin(), selected_.end(), 0);
}

bool DelimitedTable::next(RowCells& row) {
  if (waits_)
    row = first_;
  else if (!read_record(cells_, row))
    return false;
  waits_ = false;
  if (cells_.size() != columns_.size())
    refuse(fmt::format("got {} columns, but the first line has {}", cells_.size(), columns_.size()),
           row.line, "use the same columns in each row; quote cells that contain the separator");
  row.cells.clear();
  for (const std::size_t column : selected_) row.cells.push_back({cells_[column]});
  return true;
}

}  // namespace concertina
