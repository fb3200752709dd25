// results.csv of a study: a line per trial that has ended.
// Invariant: it follows from the trials' records; a file that somebody edited is told from one that
// the study wrote, by the digests of its last two contents in results.sha256, and never replaced.
#pragma once

#include <string>

#include "core/clock.h"
#include "experiments/study/results.h"

namespace concertina {

class ResultsFile {
 public:
  explicit ResultsFile(std::string path) : path_(std::move(path)) {}

  /// Throws Error{bad_input} if the file is there and a study with these results did not write it.
  void require_own(const StudyResults& results) const;

  /// Writes all lines, by number, unless somebody edited the file.
  void write(const StudyResults& results);
  /// Whether enough time has passed since the last write(), so that writes take a small share of
  /// it.
  bool is_due() const { return now() >= due_; }
  /// Throws Error{bad_input} if somebody edited the file since this process wrote it.
  void require_untouched();

 private:
  std::string digests() const { return path_.substr(0, path_.rfind('.')) + ".sha256"; }
  /// Notes, and warns once, if someone else has changed the file.
  bool edited();

  std::string path_, digest_;  // of what this process wrote last; empty: nothing
  double due_ = 0;
  bool edited_ = false;
};

}  // namespace concertina
