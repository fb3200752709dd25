// Tables in files: rows of cells under names of columns, whatever the file's format.
// A format is a file of this room that makes a TableReader, and a word in kTableFormats.
// Invariant: a reader gives each row of its file once, in order, or an input error that names the
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concertina {

/// The formats of tables, which are formats of data too.
inline constexpr std::string_view kTableFormats[] = {"tsv", "csv", "jsonl"};

/// Whether double quotes enclose cells of a tsv, as those that pandas and Excel write; auto: where
/// all cells that begin with a quote are quoted soundly, and one needs it.
inline constexpr std::string_view kQuotesNames[] = {"auto", "text", "enclose"};

struct CellText {
  enum class Kind : std::uint8_t { value, nested, missing };  // nested: JSON's lists and objects
  std::string_view text{};  // of a value: without quotes and escapes; of what is nested: JSON
  Kind kind = Kind::value;
};

struct RowCells {
  std::vector<CellText> cells{};
  std::string_view raw{};  // as it stands in the file, with its line end
  std::size_t line = 0;    // of the file, from 1 on, where the row begins
};

struct TableFileOptions {
  std::string quotes = "auto";  // of kQuotesNames; of a tsv
  bool header = true;           // the first row has the names; else these are 1, 2, ...
};

class TableReader {
 public:
  virtual ~TableReader() = default;

  /// The names of the columns; JSON's are the keys of its first row. CoLA's, which has no line of
  /// names, are source, label, mark, sentence.
  const std::vector<std::string>& columns() const { return columns_; }
  /// The row of names as it stands in the file; empty: there is none.
  virtual std::string_view head() const { return ""; }
  /// How the file was read where there are several ways, for a person; else empty.
  virtual std::string manner() const { return ""; }
  /// From now on a row has these columns alone, in this order.
  void select(std::vector<std::size_t> columns) { selected_ = std::move(columns); }
  /// Reads the next row; false: there is none. Texts are valid as long as the reader is. Throws an
  /// input error for a row that is broken, once its line and its raw text are in `row`: the next
  /// call goes on after it, if that can be.
  virtual bool next(RowCells& row) = 0;

 protected:
  std::vector<std::string> columns_;
  std::vector<std::size_t> selected_;  // of columns_
};

/// Reads a text of at most 4 GiB without a byte order mark of UTF-8; where all its lines end in \r
/// alone, as old spreadsheets for the Mac write them, they end in \n. Input error: UTF-16.
std::string read_text_file(const std::string& path);

/// Opens a table, read by read_text_file(). Input errors: an empty file, a first row that is
/// broken.
std::unique_ptr<TableReader> open_table(std::string_view format, const std::string& path,
                                        const TableFileOptions& options = {});

}  // namespace concertina
