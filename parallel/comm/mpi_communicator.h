// Message passing over MPI. Every communicator has two MPI communicators of its own, for messages
// between two ranks and for collectives, so that the two never match, nor those of two
// communicators. Invariants: every call is non-blocking but split; the main thread alone calls;
// every MPI error is an Error that names rank, operation and peer.
#pragma once

#include <cstddef>
#include <memory>

#include "parallel/comm/communicator.h"

namespace concertina {

struct MpiOptions {
  /// Longer messages travel as several. MPI counts in int: at most 2^31 - 1.
  std::size_t chunk_bytes = std::size_t{1} << 30;
};

/// A communicator over all ranks of the job; collective. MPI must have been initialised, and the
/// result destroyed before it is finalised: MpiEnvironment sees to both.
std::unique_ptr<Communicator> make_mpi_world(MpiOptions options = {});

}  // namespace concertina
