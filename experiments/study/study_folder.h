// A study on disk: STUDY/study.toml and base/ (copies of its inputs), results.csv, and a directory
// per trial with overrides.toml, log.txt, run/ and trial.json.
// Invariants: only one process runs a study at a time; others may run one trial each, but no trial
// is run by two processes; a study has one folder; a written file stays until the study rewrites
// it; edited files are never overwritten.
#pragma once

#include <map>
#include <string>

#include "experiments/study/results_file.h"
#include "experiments/study/study_spec.h"
#include "experiments/study/trial_record.h"
#include "io/file_lock.h"

namespace concertina {

/// File names in a study's folder, defined only here. The file names of array jobs are in Python
/// (commands/study_collect.py).
inline constexpr const char* kStudyFile = "study.toml";        // copy of the study's file
inline constexpr const char* kResultsFile = "results.csv";     // one line per finished trial
inline constexpr const char* kRecordFile = "trial.json";       // outcome of a trial
inline constexpr const char* kRequeuesFile = "requeues.json";  // interrupted launches of a trial

/// The paths of a study's files.
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
  /// Creates or opens `directory` for this study, whose file contains `toml`, and locks it. Throws
  /// Error{bad_input} if it contains anything else or another process is running the study.
  StudyFolder(const std::string& directory, const StudySpec& spec, const std::string& toml);
  /// Opens `directory` for one trial. Neither locks the study nor writes results.csv, since other
  /// processes may run other trials at the same time.
  StudyFolder(const std::string& directory, const StudySpec& spec, int number);

  const StudyPaths& paths() const { return paths_; }
  /// Trials with a record, by number.
  const std::map<int, TrialRecord>& trials() const { return trials_; }
  /// Writes the trial's record and its line in results.csv.
  void save(TrialRecord trial);
  /// Locks the trial and then reads its record, which another process may have written. Throws
  /// Error{bad_input} that names the process holding the lock.
  FileLock lock(int number);
  /// Removes the records of trials, which makes them open again; their runs stay.
  void reopen(const std::vector<int>& numbers);
  /// Sorts the lines of results.csv by trial. Throws Error{bad_input} if it has been edited since
  /// the folder was opened.
  void settle();

 private:
  void claim(const StudySpec& spec, const std::string& toml);
  /// Throws Error{failure} if the folder has been removed or moved since it was opened.
  void require_there() const;
  void write_results();

  const StudySpec spec_;
  const StudyPaths paths_;
  const bool whole_ = true;  // this process manages all trials
  ResultsFile results_;
  FileLock lock_;
  std::map<int, TrialRecord> trials_;
};

/// All trials of a study, with the stored data of those that have a record.
StudyResults results_of(const StudySpec& spec, const std::string& directory,
                        const std::map<int, TrialRecord>& stored);

/// Throws Error{bad_input} if `directory` belongs to another study.
void require_same_study(const std::string& directory, const StudySpec& spec);
/// Reads the spec in a study's folder. Throws Error{bad_input} for any other folder.
StudySpec read_study_folder_spec(const std::string& directory);
/// Reads all trials of a study; those without a record are `open`. Throws Error{bad_input} if
/// results.csv or a record was edited.
StudyResults read_study(const std::string& directory);

}  // namespace concertina
