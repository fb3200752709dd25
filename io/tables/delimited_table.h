// Base class of tables with separators: column names, and the same number of cells in each row.
#pragma once

#include <string>
#include <vector>

#include "io/tables/table.h"

namespace concertina {

/// Readers of plain cells between tabs, of RFC 4180, and of JSON lines. `text` is the file without
/// a byte order mark.
std::unique_ptr<TableReader> plain_table(std::string path, std::string text, bool header);
/// `manner` is the value of TableReader::manner().
std::unique_ptr<TableReader> quoted_table(std::string path, std::string text, char separator,
                                          bool header, std::string manner);
std::unique_ptr<TableReader> json_lines(std::string path, std::string text);

/// Whether the quotes in a tab-separated text are more likely to enclose cells than to be text.
bool has_quoted_cells(std::string_view text, char separator);

class DelimitedTable : public TableReader {
 public:
  DelimitedTable(std::string path, std::string text)
      : path_(std::move(path)), text_(std::move(text)) {}

  std::string_view head() const override { return head_; }
  bool next(RowCells& row) override;
  /// Reads the column names; must be called first, and only once.
  void begin(bool header);

 protected:
  /// Reads the row at `at_`, advances `at_` and `line_` past it, and sets the line and raw text of
  /// `row`. Returns false at the end.
  virtual bool read_record(std::vector<std::string_view>& cells, RowCells& row) = 0;
  /// Returns the bytes from `begin` up to `at_`.
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
  bool waits_ = false;  // whether cells_ holds the first row, not yet returned by next()
};

}  // namespace concertina
