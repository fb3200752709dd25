// The Slurm job of this process, queried through Slurm's commands. Invariants: no Slurm library is
// linked; outside a job, or if a command is not on PATH, queries return nothing.
#pragma once

#include <optional>
#include <vector>

#include "experiments/launcher/hosts.h"

namespace concertina {

/// The number of times Slurm has restarted this job; nullopt outside a job.
std::optional<int> slurm_restarts();
/// The number of nodes of this job; 0 outside a job.
int slurm_nodes();
/// The nodes of this job with their numbers of tasks; empty outside a job and for a single-node
/// job. Throws Error{bad_input} if scontrol is missing, or if mpirun is to start ranks on them and
/// srun is missing; throws Error{failure} if Slurm does not report the nodes.
std::vector<Host> slurm_hosts(bool by_mpirun);

/// Requeues the Slurm job of this process, which may kill this process at once; logs a warning if
/// Slurm refuses. Does nothing outside a job or if the job is no longer RUNNING because the user
/// has canceled it or Slurm is requeuing it.
void requeue_slurm_job();

}  // namespace concertina
