// Message passing between GPUs with NCCL. The control communicator (MPI) bootstraps it, provides
// its barrier, and reports failed ranks.
//
// Why no plan accepted by `check` can hang on it: NCCL runs the operations of one communicator in
// sequence, so one that waits for its peer blocks all that follow. Each ordered pair of ranks named
// by connect() therefore has a separate communicator and stream: the operation at the head of the
// queue on one rank matches the one at the head on the other, regardless of other traffic. This is
// an unbuffered FIFO channel per pair on which posts never wait, which is the model
// (Channels::pairs of parallel/plan/plan_graph.h) on which `check` proves a plan. Collectives and
// exchanges use one communicator and stream, in the same order on all its ranks, and a NCCL group
// makes progress on all messages of a call together. Issued operations depend only on kernels
// already in the kernel stream, and those wait for no message.
//
// NVIDIA's requirements for concurrent communicators (user guide, "Using multiple NCCL
// communicators concurrently") are met: their kernels fit on the GPU together (kPairBlocks each,
// and a rank has few neighbors); nothing synchronizes the device while they wait (connections are
// made and first used in connect() and split(), and a step allocates nothing);
// CUDA_DEVICE_MAX_CONNECTIONS is at least the number of streams (32 is set by default).
//
// Message sizes that differ between the two ends are not detected: NCCL does not report them.
#pragma once

#include <memory>
#include <string>

#include "core/memory.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Returns why the ranks of `control` cannot pass messages in `memory` with NCCL, or "" if they
/// can; the same text on all ranks. Collective.
std::string nccl_refusal(Communicator& control, Memory& memory);

/// Returns a communicator over the ranks of `control` for views in `memory`; both must outlive it.
/// Requires that nccl_refusal() is "". Construction and destruction are collective.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& control, Memory& memory);

}  // namespace concertina
