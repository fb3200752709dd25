// Message passing over MPI. Every communicator uses two separate MPI communicators, one for
// messages between two ranks and one for collectives, so these never match each other.
// Invariants: every call except split is non-blocking; only the main thread calls MPI; every MPI
// error becomes an Error that names the rank, operation and peer.
#pragma once

#include <cstddef>
#include <memory>

#include "parallel/comm/communicator.h"

namespace concertina {

struct MpiOptions {
  /// Longer messages are split. MPI counts are int, so this is at most 2^31 - 1.
  std::size_t chunk_bytes = std::size_t{1} << 30;
};

/// Returns a communicator over all ranks of the job. Collective. Requires that MPI is initialized,
/// and that the result is destroyed before MPI_Finalize; MpiEnvironment ensures both.
std::unique_ptr<Communicator> make_mpi_world(MpiOptions options = {});

}  // namespace concertina
