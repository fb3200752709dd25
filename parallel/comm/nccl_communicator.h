// Message passing between GPUs by NCCL; MPI (the control communicator) starts it, is its barrier,
// and tells of ranks that fail.
//
// Why no plan that `check` accepts can hang on it. NCCL's operations on one communicator run one
// after the other, and one that waits for its peer keeps back all after it. So each ordered pair
// of ranks that connect() names has a communicator and a stream of its own: what is at its head on
// the one rank matches what is at its head on the other, whatever goes on beside it. That is a
// FIFO channel a pair without buffering, and posts never wait: Channels::pairs of
// parallel/plan/plan_graph.h, on which `check` proves a plan. Collectives and exchanges have one
// communicator and stream, and one order on all its ranks; within one call NCCL's group makes all
// progress together. What is issued needs nothing but kernels that are in the kernels' stream
// already, and these wait for no message.
//
// What NVIDIA demands of several communicators at a time (user guide, "Using multiple NCCL
// communicators concurrently"), and how it is met: their kernels fit on the GPU together
// (kPairBlocks each, and a rank has few neighbours); nothing synchronises the device while they
// wait (connections are made and used once in connect() and split(), and a step allocates nothing);
// CUDA_DEVICE_MAX_CONNECTIONS is not below the number of streams (32 is set unless it is).
//
// Sizes that differ between the two ends are not found: NCCL says nothing of that.
#pragma once

#include <memory>
#include <string>

#include "core/memory.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Why the ranks of `control` cannot pass messages of `memory` by NCCL, or "": the same words on
/// all of them. Collective.
std::string nccl_refusal(Communicator& control, Memory& memory);

/// A communicator over the ranks of `control`, for views of `memory`; both outlive it. Collective,
/// and only where nccl_refusal() is "". Destroying it is collective too.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& control, Memory& memory);

}  // namespace concertina
