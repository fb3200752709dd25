// Tables of tabs as GLUE publishes them: fields stand between tabs, rows are lines; no quotes, no
// escapes.
#include "io/tables/delimited_table.h"

namespace concertina {
namespace {

class PlainTable final : public DelimitedTable {
 public:
  using DelimitedTable::DelimitedTable;

 private:
  bool read_record(std::vector<std::string_view>& cells, std::size_t& line_number) override {
    if (at_ >= text_.size()) return false;
    const std::string_view text(text_);
    const std::size_t end = std::min(text.find('\n', at_), text.size());
    std::string_view line = text.substr(at_, end - at_);
    at_ = end + 1;
    line_number = line_++;
    if (line.ends_with('\r')) line.remove_suffix(1);
    cells.clear();
    for (std::size_t begin = 0; begin != std::string_view::npos;) {
      const std::size_t tab = line.find('\t', begin);
      cells.push_back(line.substr(begin, tab - begin));
      begin = tab == std::string_view::npos ? tab : tab + 1;
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
