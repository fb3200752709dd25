// A study's results.csv, with one line per finished trial. Invariant: derived from the trials'
// records. The digests of its last two versions, in results.sha256, reveal an edited file, which is
// never replaced.
#pragma once

#include <string>

#include "core/clock.h"
#include "experiments/study/results.h"

namespace concertina {

class ResultsFile {
 public:
  explicit ResultsFile(std::string path) : path_(std::move(path)) {}

  /// Throws Error{bad_input} if the file exists and was not written by a study with these results.
  void require_own(const StudyResults& results) const;

  /// Writes all lines, sorted by number, unless the file was edited.
  void write(const StudyResults& results);
  /// Whether enough time has passed since the last write() to keep the share of time spent writing
  /// small.
  bool is_due() const { return now() >= due_; }
  /// Throws Error{bad_input} if the file has been edited since this process wrote it.
  void require_untouched();

 private:
  std::string digests() const { return path_.substr(0, path_.rfind('.')) + ".sha256"; }
  /// Detects and records that the file was edited, and warns once.
  bool edited();

  std::string path_, digest_;  // digest of the last write; empty: none
  double due_ = 0;
  bool edited_ = false;
};

}  // namespace concertina
