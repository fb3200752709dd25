// Processes of this host's ranks, and which of them have died.
// Invariants: no call waits for another rank after construction; a rank that aborts the job on
// purpose announces it first and is never reported as dead.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

class LocalRanks {
 public:
  /// Collective over `local`, the ranks of this host. `rank` is this process's world rank. Without
  /// shared memory from MPI, no other rank is watched. A rank in a container with a separate PID
  /// namespace is not watched.
  LocalRanks(MPI_Comm local, int rank);
  /// Collective.
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  /// Announces that this rank is about to abort the job and has reported why. Any thread.
  void leave() noexcept {
    if (own_ != nullptr) own_->leaves.store(1);
  }
  /// Renumbers the ranks after a loss: `now` contains the surviving ranks of `before`.
  void renumber(MPI_Comm before, MPI_Comm now);
  LocalState state() const;
  /// Sends SIGKILL to the other ranks.
  void kill_others() const;
  OperationLog* operations() const { return own_ == nullptr ? nullptr : &own_->operations; }
  /// Logs by world rank; null for ranks of other hosts.
  std::vector<const OperationLog*> all_operations(int ranks) const;

 private:
  struct Slot {  // in the host's shared memory, one per rank
    std::atomic<std::int32_t> rank;
    std::int32_t process;
    std::uint64_t processes;  // PID namespace of `process`
    std::atomic<std::int32_t> leaves;
    OperationLog operations;
  };

  MPI_Win window_ = MPI_WIN_NULL;
  Slot* own_ = nullptr;
  std::vector<const Slot*> slots_;  // by rank
  std::vector<const Slot*> all_;    // including processes in other PID namespaces
};

}  // namespace concertina
