// The job of Slurm that this process is in, and what Slurm's commands say.
// Invariants: nothing of Slurm is linked; outside of a job, and where a command is not on PATH,
// there is nothing to say.
#pragma once

#include <optional>
#include <vector>

#include "experiments/launcher/hosts.h"

namespace concertina {

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

}  // namespace concertina
