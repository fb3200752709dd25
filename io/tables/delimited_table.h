// What tables of lines with separators have in common: names of columns, as many cells in each row.
#pragma once

#include <string>
#include <vector>

#include "io/tables/table.h"

namespace concertina {

/// The readers: fields as they stand between tabs, RFC 4180, JSON lines. `text` is the file without
/// a byte order mark.
std::unique_ptr<TableReader> plain_table(std::string path, std::string text, bool header);
/// `manner`: as TableReader has it.
std::unique_ptr<TableReader> quoted_table(std::string path, std::string text, char separator,
                                          bool header, std::string manner);
std::unique_ptr<TableReader> json_lines(std::string path, std::string text);

/// Whether the quotes of a text with tabs are more likely to enclose cells than to be text.
bool has_quoted_cells(std::string_view text, char separator);

class DelimitedTable : public TableReader {
 public:
  DelimitedTable(std::string path, std::string text)
      : path_(std::move(path)), text_(std::move(text)) {}

  std::string_view head() const override { return head_; }
  bool next(RowCells& row) override;
  /// Reads the names; called once, before all else.
  void begin(bool header);

 protected:
  /// Reads the row at `at_`, and moves it and `line_` past it; `row`: its line and raw text; false
  /// at the end.
  virtual bool read_record(std::vector<std::string_view>& cells, RowCells& row) = 0;
  /// The bytes from `begin` up to `at_`.
  std::string_view raw_from(std::size_t begin) const {
    return std::string_view(text_).substr(begin, at_ - begin);
  }
  [[noreturn]] void refuse(const std::string& what, std::size_t line, const std::string& fix) const;

  std::string path_, text_;
  std::size_t at_ = 0, line_ = 1;

 private:
  std::vector<std::string_view> cells_;
  std::string_view head_;
  RowCells first_;
  bool waits_ = false;  // cells_ is the first row, which next() has not given yet
};

}  // namespace concertina
