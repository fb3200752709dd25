// Rows of tables: one or two texts, and an optional label as written. Invariant: rows are in file
// and line order; texts are valid as long as the LabelledRows exists.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/labelled/table_columns.h"
#include "io/tables/table.h"

namespace concertina {

struct LabelledRow {
  std::array<std::string_view, 2> text{};  // the second is empty unless rows are pairs
  CellText label{};
  std::size_t line = 0;  // of its file
};

class LabelledRows {
 public:
  /// `options.format` must be one of kTableFormats. Columns are chosen by find_columns().
  explicit LabelledRows(const DataOptions& options);

  /// Appends the rows of a file. Throws Error{bad_input} for a damaged row or one without text, if
  /// find_columns() throws, or if only some files have pairs or labels. With `may_lack`, the file
  /// may lack labels.
  void read(const std::string& path, bool may_lack = false);

  std::span<const LabelledRow> rows() const { return rows_; }
  /// Returns the number of rows before the files without labels.
  std::size_t labelled_rows() const { return unlabelled_from_.value_or(rows_.size()); }
  /// Whether rows have two texts.
  bool is_pair() const { return pair_; }
  /// Whether rows have labels, which are optional if the task does not need them.
  bool has_labels() const { return labelled_; }
  /// Returns "FILE:LINE" of a row.
  std::string place_of(std::size_t row) const;
  /// Returns human-readable lines: the columns, and how files were read if that is ambiguous.
  std::string summary() const { return summary_; }

 private:
  struct Start {
    std::string file;
    std::size_t row;  // of its first row
  };

  TableColumns columns_of(const TableReader& table, const std::string& path, bool may_lack) const;

  std::string format_;
  TableFileOptions table_;
  std::vector<std::string> text_columns_;
  std::string label_column_;
  bool many_;                                        // whether a row has several labels
  std::vector<std::unique_ptr<TableReader>> files_;  // owners of the texts in rows_
  std::vector<Start> starts_;
  std::vector<LabelledRow> rows_;
  std::optional<std::size_t> unlabelled_from_;  // of rows_
  bool pair_ = false, labelled_ = true;
  bool needs_label_, reads_label_;
  std::string summary_;
};

/// Returns a hash that is equal for rows whose texts differ only in case and white space.
std::uint64_t row_hash(const LabelledRow& row, bool pair);
/// Returns a hash of the whole row as written.
std::uint64_t exact_hash(const LabelledRow& row);

}  // namespace concertina
