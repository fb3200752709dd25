// Lost ranks of a world, and how the surviving ranks abandon their pending operations.
// Invariants: no loss is handled unless one is expected; once a loss is known, every operation
// on every communicator of the world throws LostRanks on all ranks; when the Works are destroyed,
// MPI no longer uses their memory, or is_calm() is false.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/comm/mpi_communicator.h"

namespace concertina {

class MpiLoss {
 public:
  /// `all` contains the ranks of the world.
  void begin(MPI_Comm all) { all_ = all; }
  MPI_Comm all() const { return all_; }
  void add(MPI_Comm comm) { comms_.push_back(comm); }
  void remove(MPI_Comm comm) { std::erase(comms_, comm); }

  /// Declares that ranks may be lost from now on and that the caller can continue without them.
  void expect() { expected_ = true; }
  bool expected() const { return expected_; }
  /// Reports that ranks are lost. Any thread.
  void report() noexcept { reported_ = true; }
  /// Whether, after expect(), any rank of the world knows of a loss.
  bool known() const;
  /// Revokes all pending operations on all ranks. Throws LostRanks.
  [[noreturn]] void leave(std::string what, std::string where);

  /// Whether leave() was called.
  bool left() const { return left_; }
  /// Waits, for a limited time, until the request has ended. MPI ends it soon after leave().
  void end(MPI_Request& request);
  bool is_calm() const { return calm_; }

 private:
  MPI_Comm all_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> comms_;
  bool expected_ = false, left_ = false, calm_ = true;
  double left_at_ = 0;
  std::atomic<bool> reported_ = false;
};

/// Returns a world over the ranks of `over` whose communicators share `loss`. Collective.
std::unique_ptr<Communicator> make_mpi_world(MPI_Comm over, std::shared_ptr<MpiLoss> loss,
                                             MpiOptions options = {});

}  // namespace concertina
