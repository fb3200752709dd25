// results.csv of a study: a line per trial that has ended.
// Invariant: it follows from the trials' records; a line more costs a line, whatever is there; a
// file that somebody edited is told from one that a kill cut short, and never written to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/study/results.h"
#include "io/sha256.h"

namespace concertina {

class ResultsFile {
 public:
  explicit ResultsFile(std::string path) : path_(std::move(path)) {}

  /// Throws Error{bad_input} if the file is there and not as a study with these results wrote it:
  /// what has a digest in results.sha256, then the line of a record that a kill may have cut.
  void require_own(const StudyResults& results) const;

  /// Writes all lines anew, by number, unless that is what stands there.
  void write(const StudyResults& results);
  /// Adds the line of a trial that has none yet. False: it has one, or has other columns than the
  /// file, so that write() is to come.
  bool append(const TrialRecord& trial);
  /// Throws Error{bad_input} if somebody edited the file since this process began.
  void require_untouched();

 private:
  std::string digests() const { return path_.substr(0, path_.rfind('.')) + ".sha256"; }
  /// The file is to have, or has, this text.
  void know(const std::string& text);
  /// Notes, and warns once, if someone else has changed the file.
  /// `by_bytes`: by all of them, else by their number.
  bool edited(bool by_bytes);

  std::string path_;
  std::optional<std::string> written_;  // by this process: what the file has
  std::string digest_;                  // the line of results.sha256 for that
  Sha256 hash_;                         // of that
  std::vector<std::string> columns_;
  std::vector<int> numbers_;  // of trials with a line, ascending
  bool edited_ = false;
};

}  // namespace concertina
