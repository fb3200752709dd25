// A communicator for memory that its transport cannot access, such as GPU memory without CUDA-aware
// MPI. Messages pass through buffers in host memory (Memory::make_staging), and no call waits for a
// copy. Invariants: a message leaves after all kernels issued before its isend and arrives after
// all issued before its irecv; messages and collectives reach the transport in call order; buffers
// are reused by size, so no call allocates after warm-up.
#pragma once

#include <memory>

#include "core/memory.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Returns a communicator over `transport` for views in `memory`; both must outlive it. Its splits
/// own their transports.
std::unique_ptr<Communicator> stage_through_host(Communicator& transport, Memory& memory);

}  // namespace concertina
