// The rows of tables: a text or two, and a label as it is written, where there is one.
// Invariant: rows are in the order of the files and of their lines; texts are valid as long as the
// LabelledRows is.
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
  std::array<std::string_view, 2> text{};  // the second is empty where there are no pairs
  CellText label{};
  std::size_t line = 0;  // of its file
};

class LabelledRows {
 public:
  /// `options.format`: of kTableFormats. Columns as find_columns() has them.
  explicit LabelledRows(const DataOptions& options);

  /// Appends the rows of a file. Input errors: a row that is broken or lacks a text, as of
  /// find_columns(), a file of pairs among others; or one of labels where others have none. With
  /// `may_lack` the file may have none: those of its rows are missing.
  void read(const std::string& path, bool may_lack = false);

  std::span<const LabelledRow> rows() const { return rows_; }
  /// The rows before those of files without labels.
  std::size_t labelled_rows() const { return unlabelled_from_.value_or(rows_.size()); }
  /// Whether a row has two texts.
  bool is_pair() const { return pair_; }
  /// Whether rows have labels: all, or where the task needs none, those of no file.
  bool has_labels() const { return labelled_; }
  /// "FILE:LINE" of a row.
  std::string place_of(std::size_t row) const;
  /// Lines for a person: the columns, and how the files were read where that is not plain.
  std::string summary() const { return summary_; }

 private:
  struct Start {
    std::string file;
    std::size_t row;  // its first
  };

  TableColumns columns_of(const TableReader& table, const std::string& path, bool may_lack) const;

  std::string format_;
  TableFileOptions table_;
  std::vector<std::string> text_columns_;
  std::string label_column_;
  bool many_;                                        // labels in a row
  std::vector<std::unique_ptr<TableReader>> files_;  // what rows_ looks into
  std::vector<Start> starts_;
  std::vector<LabelledRow> rows_;
  std::optional<std::size_t> unlabelled_from_;  // of rows_
  bool pair_ = false, labelled_ = true;
  bool needs_label_, reads_label_;
  std::string summary_;
};

/// The hash by which rows are told to be the same: their texts are, but for case and space.
std::uint64_t row_hash(const LabelledRow& row, bool pair);
/// That of all that it holds, as it is written.
std::uint64_t exact_hash(const LabelledRow& row);

}  // namespace concertina
