// A study as an array job of Slurm: its batch script, what was submitted, and where each trial
// stands. A study of more trials than an array may have indices is several arrays: one for each
// range of trials whose numbers differ in their last digits alone, since those digits are the
// index. Invariants: the script depends on its values alone; a trial that waits or runs in an
// earlier submission is never submitted a second time; nothing of Slurm is linked but its own
// commands are asked: where one is not on PATH, that is said, or nothing is known.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/launcher/slurm.h"
#include "experiments/study/study_folder.h"

namespace concertina {

/// Throws Error{bad_input} where no sbatch is on PATH.
void require_sbatch();
/// Submits the script, to begin once the job `after` has ended (empty: as soon as it can). Returns
/// the job's ID. Throws a failure with what sbatch said.
std::string submit_batch(const std::string& script, const std::string& after);
/// The options of a batch script that are the user's to choose; empty or 0: as Slurm has it.
struct BatchOptions {
  std::string partition, launcher, more;  // more: options of sbatch as they are
  int minutes = 0, nodes = 0, cpus_per_task = 0, at_once = 0;
};

/// The trials of one array job.
struct TrialArray {
  int first = 0, digits = 0;  // trial = first + index; digits: of an index, where first is not 0
  std::vector<int> trials;    // ascending
};
/// `trials` by arrays whose indices are below `size`, in ascending order.
std::vector<TrialArray> arrays_of(const std::vector<int>& trials, int size);

struct BatchJob {
  std::string name, program, study, directory;  // absolute paths; directory: where it runs
  TrialArray array;
  int ranks = 1;  // the most that a trial of it has
};

/// The launcher of that name in place of the usual one. Throws Error{bad_input} if the study has
/// one of its own, or there is none of that name.
void set_launcher(const std::string& name, StudySpec& spec);
/// The most ranks that one of these trials has.
int most_ranks(const StudySpec& spec, const std::vector<int>& trials);
/// Throws Error{bad_input} if the options cannot be part of a script.
std::string batch_script(const BatchJob& job, const BatchOptions& options);

/// Where the trials of a study stand.
struct Standing {
  std::map<TrialState, std::vector<int>> ended;
  std::vector<SlurmTask> running, queued;
  std::vector<int> lost;  // begun by a task that is gone, without a record
  std::vector<int> left;  // none of these
  std::string unknown;    // why it is not known what waits or runs; empty: it is
};

/// Asks squeue where the study was submitted before.
Standing standing_of(const StudyResults& results);
/// Notes that these trials were submitted as `job`.
void note_submission(const std::string& study, const std::string& job, const TrialArray& array);

}  // namespace concertina
