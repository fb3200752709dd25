// What a study asks of Slurm, by its own commands: sbatch and squeue.
// Invariant: nothing of Slurm is linked; where a command is not on PATH, that is said, or nothing
// is known.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace concertina {

/// A task of an array job that waits or runs.
struct SlurmTask {
  std::string job;  // of the array
  int index = 0;    // in it
  int trial = 0;    // that it runs; 0: not known here
  std::string state, nodes;
};

/// Throws Error{bad_input} where no sbatch is on PATH.
void require_sbatch();
/// Submits the script, to begin once the job `after` has ended (empty: as soon as it can). Returns
/// the job's ID. Throws a failure with what sbatch said.
std::string submit_batch(const std::string& script, const std::string& after);
/// MaxArraySize: indices of an array are below it. Slurm's default where that cannot be asked.
/// Throws Error{bad_input} where the cluster has no arrays.
int most_array_indices();
/// This user's array tasks; nothing where no squeue is on PATH. Throws a failure with what squeue
/// said if it fails.
std::optional<std::vector<SlurmTask>> slurm_tasks();

/// How often Slurm started this job again; nothing outside of a job.
std::optional<int> slurm_restarts();
/// Nodes of this job; 0 outside of one.
int slurm_nodes();

}  // namespace concertina
