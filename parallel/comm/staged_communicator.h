// A communicator for memory that its transport cannot reach, such as a GPU's without CUDA-aware
// MPI: messages pass through buffers in host memory (Memory::make_staging), and no call waits for a
// copy. Invariants: a message leaves after all kernels issued before its isend and lands after
// all issued before its irecv; messages and collectives reach the transport in the order of their
// calls; buffers are kept for the next message of their size, so after warm-up no call allocates.
#pragma once

#include <memory>

#include "core/memory.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// A communicator over `transport`, for views of `memory`. Both outlive it; splits of it own
/// theirs.
std::unique_ptr<Communicator> stage_through_host(Communicator& transport, Memory& memory);

}  // namespace concertina
