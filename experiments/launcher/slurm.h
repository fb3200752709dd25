// The job of Slurm that this process is in, and what Slurm's commands say.
// Invariants: nothing of Slurm is linked; outside of a job, and where a command is not on PATH,
// there is nothing to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/launcher/hosts.h"

namespace concertina {

/// Returns what the command prints on stdout and stderr. Throws a failure with that if it does not
/// end well, or within five minutes.
std::string slurm_says(const std::vector<std::string>& words, const std::string& fix);

/// How often Slurm started this job again; nothing outside of a job.
std::optional<int> slurm_restarts();
/// Nodes of this job; 0 outside of one.
int slurm_nodes();
/// The nodes of this job with the tasks of each; none outside of a job, and of a job on one node.
/// Throws bad input without scontrol, or, where mpirun is to start ranks there, srun; a failure if
/// Slurm does not say which they are.
std::vector<Host> slurm_hosts(bool by_mpirun);

/// Has the job of Slurm that this process is in start again, which may end this process at once; a
/// warning says so if Slurm refuses. Nothing outside of a job, and in one that is not RUNNING any
/// more: the user has cancelled it, or Slurm starts it again by itself.
void requeue_slurm_job();

/// A task of an array job that waits or runs.
struct SlurmTask {
  std::string job;  // of the array
  int index = 0;    // in it
  int trial = 0;    // that it runs; 0: not known here
  std::string state, nodes;
};
/// The tasks of this user's array jobs; nothing where no squeue is on PATH. Throws a failure with
/// what squeue said if it fails.
std::optional<std::vector<SlurmTask>> slurm_tasks();

/// MaxArraySize: indices of an array are below it. Slurm's default where that cannot be asked.
/// Throws Error{bad_input} where the cluster has no arrays.
int most_array_indices();

}  // namespace concertina
