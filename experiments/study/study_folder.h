// A study on disk: STUDY/study.toml and base/ (copies of what it was started from), a directory per
// trial with overrides.toml, log.txt, run/ and trial.json, and results.csv over all of them.
// Invariants: one process runs a study at a time, and one study has a folder; what was written
// stays until the study itself writes it again; a file that somebody edited is never overwritten.
#pragma once

#include <map>
#include <string>

#include "experiments/study/study_spec.h"
#include "experiments/study/trial_record.h"
#include "io/file_lock.h"

namespace concertina {

class StudyFolder {
 public:
  /// Makes or opens `directory` for this study, `toml` being its file, and locks it. Throws
  /// Error{bad_input} if it holds another study, or something else, or another process runs it.
  StudyFolder(std::string directory, const StudySpec& spec, const std::string& toml);

  const std::string& path() const { return path_; }
  /// Trials that have a record, by number.
  const std::map<int, StoredTrial>& trials() const { return trials_; }
  /// Writes the trial's record, then results.csv.
  void save(const StoredTrial& trial);
  /// Removes the record of a trial, so that it is open again; its run stays.
  void reopen(int number);

  std::string trial_directory(int number) const;
  std::string run_directory(int number) const { return trial_directory(number) + "/run"; }
  std::string log(int number) const { return trial_directory(number) + "/log.txt"; }
  std::string overrides(int number) const { return trial_directory(number) + "/overrides.toml"; }
  /// The copies of the study's base files, in order.
  std::vector<std::string> bases() const;

 private:
  void claim(const StudySpec& spec, const std::string& toml);
  void write_results();

  std::string path_;
  FileLock lock_;
  StudySpec spec_;
  std::map<int, StoredTrial> trials_;
};

/// The spec that a study's folder has. Throws Error{bad_input} if it is no such folder.
StudySpec read_study_folder_spec(const std::string& directory);
/// All trials of a study: those without a record are `open`. Throws Error{bad_input} if
/// results.csv, or a record, is not as the study wrote it.
StudyResults read_study(const std::string& directory);

/// The results as CSV (RFC 4180), a line a trial that has ended.
std::string results_csv(const StudyResults& results);

}  // namespace concertina
