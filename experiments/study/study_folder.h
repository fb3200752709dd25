// A study on disk: STUDY/study.toml and base/ (copies of what it was started from), a directory per
// trial with overrides.toml, log.txt, run/ and trial.json, and results.csv over all of them.
// Invariants: one process runs a study at a time, beside processes that run one trial each, and no
// trial is run by two; one study has a folder; what was written stays until the study itself writes
// it again; a file that somebody edited is never overwritten.
#pragma once

#include <map>
#include <string>

#include "experiments/study/results_file.h"
#include "experiments/study/study_spec.h"
#include "experiments/study/trial_record.h"
#include "io/file_lock.h"

namespace concertina {

/// The names in a study's folder; no other file of the program spells them. Those of array jobs are
/// Python's (commands/study_collect.py).
inline constexpr const char* kStudyFile = "study.toml";        // copy of what it runs
inline constexpr const char* kResultsFile = "results.csv";     // a line per ended trial
inline constexpr const char* kRecordFile = "trial.json";       // of a trial: what came of it
inline constexpr const char* kRequeuesFile = "requeues.json";  // of a trial: launches cut short

/// The paths of what is in a study's folder.
struct StudyPaths {
  std::string root;
  std::vector<std::string> base_files;  // the study's copies, in order

  StudyPaths(const std::string& directory, const StudySpec& spec);
  std::string study() const { return root + "/" + kStudyFile; }
  std::string results() const { return root + "/" + kResultsFile; }
  std::string trial(int number) const { return root + "/" + std::to_string(number); }
  std::string run(int number) const { return trial(number) + "/run"; }
  std::string log(int number) const { return trial(number) + "/log.txt"; }
  std::string overrides(int number) const { return trial(number) + "/overrides.toml"; }
  std::string record(int number) const { return trial(number) + "/" + kRecordFile; }
};

class StudyFolder {
 public:
  /// Makes or opens `directory` for this study, `toml` being its file, and locks it. Throws
  /// Error{bad_input} if it holds another study, or something else, or another process runs it.
  StudyFolder(const std::string& directory, const StudySpec& spec, const std::string& toml);
  /// Opens `directory` for this trial alone: neither is the study locked nor results.csv written,
  /// as other processes may run other trials at the same time.
  StudyFolder(const std::string& directory, const StudySpec& spec, int number);

  const StudyPaths& paths() const { return paths_; }
  /// Trials that have a record, by number.
  const std::map<int, TrialRecord>& trials() const { return trials_; }
  /// Writes the trial's record, then its line of results.csv.
  void save(TrialRecord trial);
  /// Locks the trial against other processes, then reads its record, which one of them may have
  /// written. Throws Error{bad_input} that names the process which has it.
  FileLock lock(int number);
  /// Removes the records of trials, so that they are open again; their runs stay.
  void reopen(const std::vector<int>& numbers);
  /// Puts the lines of results.csv in the order of trials. Throws Error{bad_input} if somebody
  /// edited it since the folder was opened.
  void settle();

 private:
  void claim(const StudySpec& spec, const std::string& toml);
  /// Throws a failure if the folder was removed, or moved, since it was opened.
  void require_there() const;
  void write_results();

  const StudySpec spec_;
  const StudyPaths paths_;
  const bool whole_ = true;  // all trials are this process' to look after
  ResultsFile results_;
  FileLock lock_;
  std::map<int, TrialRecord> trials_;
};

/// All trials of a study, with what is stored of those that have a record.
StudyResults results_of(const StudySpec& spec, const std::string& directory,
                        const std::map<int, TrialRecord>& stored);

/// Throws Error{bad_input} if another study than this one is in `directory`.
void require_same_study(const std::string& directory, const StudySpec& spec);
/// The spec that a study's folder has. Throws Error{bad_input} if it is no such folder.
StudySpec read_study_folder_spec(const std::string& directory);
/// All trials of a study: those without a record are `open`. Throws Error{bad_input} if
/// results.csv, or a record, is not as the study wrote it.
StudyResults read_study(const std::string& directory);

}  // namespace concertina
