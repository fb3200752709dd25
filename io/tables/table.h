// Tables in files: rows of cells under column names, independent of the file format. A format is a
// file in this folder that creates a TableReader, and an entry in kTableFormats. Invariant: a
// reader returns each row of its file once, in order, or throws Error{bad_input} naming the line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concertina {

/// The table formats, which are also data formats.
inline constexpr std::string_view kTableFormats[] = {"tsv", "csv", "jsonl"};

/// Whether double quotes enclose cells of a tsv, as written by pandas and Excel. auto: they do if
/// all cells that begin with a quote are quoted correctly and at least one requires quotes.
inline constexpr std::string_view kQuotesNames[] = {"auto", "text", "enclose"};

struct CellText {
  enum class Kind : std::uint8_t { value, nested, missing };  // nested: a JSON list or object
  std::string_view text{};  // a value without quotes and escapes, or nested JSON
  Kind kind = Kind::value;
};

struct RowCells {
  std::vector<CellText> cells{};
  std::string_view raw{};  // as in the file, with its line ending
  std::size_t line = 0;    // first line of the row in the file, from 1
};

struct TableFileOptions {
  std::string quotes = "auto";  // one of kQuotesNames; for a tsv
  bool header = true;           // whether the first row names the columns; if not: 1, 2, ...
};

class TableReader {
 public:
  virtual ~TableReader() = default;

  /// Returns the column names: for JSON, the keys of the first row; for CoLA, which has no header,
  /// the names source, label, mark and sentence.
  const std::vector<std::string>& columns() const { return columns_; }
  /// Returns the header row as in the file; empty if there is none.
  virtual std::string_view head() const { return ""; }
  /// Returns a human-readable note on how an ambiguous file was read; otherwise empty.
  virtual std::string manner() const { return ""; }
  /// Restricts subsequent rows to these columns, in this order.
  void select(std::vector<std::size_t> columns) { selected_ = std::move(columns); }
  /// Reads the next row; returns false at the end. Texts are valid as long as the reader exists. If
  /// a row is damaged, throws Error{bad_input} after setting its line and raw text in `row`; the
  /// next call continues after it if possible.
  virtual bool next(RowCells& row) = 0;

 protected:
  std::vector<std::string> columns_;
  std::vector<std::size_t> selected_;  // indices into columns_
};

/// Reads a text of at most 4 GiB and removes a UTF-8 byte order mark. Line endings that are a lone
/// \r, as in old Mac spreadsheets, are converted to \n. Throws Error{bad_input} for UTF-16.
std::string read_text_file(const std::string& path);

/// Opens a table with read_text_file(). Throws Error{bad_input} for an empty file or a damaged
/// first row.
std::unique_ptr<TableReader> open_table(std::string_view format, const std::string& path,
                                        const TableFileOptions& options = {});

}  // namespace concertina
