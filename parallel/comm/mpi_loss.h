// Ranks of a world that are lost, and how the others get out of what they have under way.
// Invariants: nothing here happens unless the loss is expected; once it is known, every operation
// on every communicator of the world throws LostRanks, on all its ranks; when the Works are gone
// MPI has done with their memory, or is_calm() is false.
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
  /// `all`: the ranks of the world.
  void begin(MPI_Comm all) { all_ = all; }
  MPI_Comm all() const { return all_; }
  void add(MPI_Comm comm) { comms_.push_back(comm); }
  void remove(MPI_Comm comm) { std::erase(comms_, comm); }

  /// From now on ranks may be lost: the caller goes on without them.
  void expect() { expected_ = true; }
  bool expected() const { return expected_; }
  /// From any thread: ranks are lost.
  void tell() noexcept { told_ = true; }
  /// Whether any rank of the world knows of a loss that was expected.
  bool known() const;
  /// Ends all that is under way, on all ranks. Throws LostRanks.
  [[noreturn]] void leave(std::string what, std::string where);

  /// leave() was called.
  bool left() const { return left_; }
  /// After leave(): waits until the request has ended, which takes MPI no time.
  void end(MPI_Request& request);
  bool is_calm() const { return calm_; }

 private:
  MPI_Comm all_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> comms_;
  bool expected_ = false, left_ = false, calm_ = true;
  double left_at_ = 0;
  std::atomic<bool> told_ = false;
};

/// A world over the ranks of `over`, whose communicators share `loss`. Collective over these.
std::unique_ptr<Communicator> make_mpi_world(MPI_Comm over, std::shared_ptr<MpiLoss> loss,
                                             MpiOptions options = {});

}  // namespace concertina
