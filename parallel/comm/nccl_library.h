// NCCL, found at run time: a program that has it in its build starts without it.
// Source of what the calls promise: NCCL user guide 2.28, docs.nvidia.com/deeplearning/nccl.
#pragma once

#include <nccl.h>

#include <string>

#include "core/cuda/base/library.h"

namespace concertina {

#define CONCERTINA_NCCL(X)             \
  X(get_version, ncclGetVersion)       \
  X(get_unique_id, ncclGetUniqueId)    \
  X(comm_init, ncclCommInitRankConfig) \
  X(comm_split, ncclCommSplit)         \
  X(comm_finalize, ncclCommFinalize)   \
  X(comm_destroy, ncclCommDestroy)     \
  X(comm_abort, ncclCommAbort)         \
  X(comm_state, ncclCommGetAsyncError) \
  X(error_string, ncclGetErrorString)  \
  X(last_error, ncclGetLastError)      \
  X(group_start, ncclGroupStart)       \
  X(group_end, ncclGroupEnd)           \
  X(send, ncclSend)                    \
  X(receive, ncclRecv)                 \
  X(broadcast, ncclBroadcast)

/// The functions in use, under their own names.
struct Nccl {
  CONCERTINA_NCCL(CONCERTINA_LIBRARY_MEMBER)
};

/// Why NCCL cannot be used here, or "". Loads the library at the first call.
std::string nccl_problem();
/// The library; to be called only where nccl_problem() is "".
const Nccl& nccl();

}  // namespace concertina
