// Tab-separated tables as published by GLUE: rows are lines, without quotes or escapes.
#include "io/tables/delimited_table.h"

namespace concertina {
namespace {

class PlainTable final : public DelimitedTable {
 public:
  using DelimitedTable::DelimitedTable;

 private:
  bool read_record(std::vector<std::string_view>& cells, RowCells& row) override {
    if (at_ >= text_.size()) return false;
    const std::string_view text(text_);
    const std::size_t end = std::min(text.find('\n', at_), text.size());
    std::string_view line = text.substr(at_, end - at_);
    const std::size_t begin = at_;
    at_ = std::min(end + 1, text.size());
    row.raw = raw_from(begin);
    row.line = line_++;
    if (line.ends_with('\r')) line.remove_suffix(1);
    cells.clear();
    for (std::size_t cell = 0; cell != std::string_view::npos;) {
      const std::size_t tab = line.find('\t', cell);
      cells.push_back(line.substr(cell, tab - cell));
      cell = tab == std::string_view::npos ? tab : tab + 1;
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<TableReader> plain_table(std::string path, std::string text, bool header) {
  auto table = std::make_unique<PlainTable>(std::move(path), std::move(text));
  table->begin(header);
  return table;
}

}  // namespace concertina
