// The rows of a run's tables, sound or not, and what is wrong with them.
// Invariant: each row of each file is there once, in order; what can be read is read, and what
// cannot be is a row too.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/config.h"
#include "io/datasets/sentences.h"
#include "io/quality/row_faults.h"
#include "io/tables/table.h"

namespace concertina {

/// What a look at tables is to do.
struct QualityOptions {
  double near = 0.8;           // least similarity of rows that are near; above 1: none is
  bool counts_tokens = false;  // against model.context, by data.tokenizer
};

class CheckedFiles {
 public:
  /// The files of data.files, data.validation_files and data.test_files. Input errors: data.format
  /// is no table; a file that cannot be opened, or has no column of text.
  CheckedFiles(const RunConfig& config, const QualityOptions& options);

  std::span<const CheckedRow> rows() const { return rows_; }
  std::span<const RowFinding> findings() const { return findings_; }
  const QualityOptions& options() const { return options_; }
  std::int64_t context() const { return context_; }
  bool has_labels() const { return has_labels_; }
  /// "FILE:LINE".
  std::string place_of(std::size_t row) const;
  std::size_t line_of(std::size_t row) const { return sources_[row].line; }
  /// A row as it stands in its file, with its line end.
  std::string_view raw(std::size_t row) const { return sources_[row].raw; }
  /// The row of names of the first file, likewise; empty: it has none.
  std::string_view head() const { return tables_.front()->head(); }

 private:
  struct Source {
    std::size_t file, line;
    std::string_view raw;
  };

  void read(const RunConfig& config, const std::string& path, Split split);
  CheckedRow checked(const RowCells& row, std::size_t texts, bool labelled) const;

  QualityOptions options_;
  std::int64_t context_;
  SentenceEncoder encoder_;
  bool has_labels_ = true;
  std::vector<std::string> files_;
  std::vector<std::unique_ptr<TableReader>> tables_;  // what rows_ looks into
  std::vector<Source> sources_;                       // of rows_
  std::vector<CheckedRow> rows_;
  std::vector<RowFinding> findings_;
};

}  // namespace concertina
