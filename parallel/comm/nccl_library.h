// NCCL, loaded at run time, so that a program built with NCCL starts on hosts without it.
// Source of the calls' semantics: NCCL user guide 2.28, docs.nvidia.com/deeplearning/nccl.
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

/// The NCCL functions in use.
struct Nccl {
  CONCERTINA_NCCL(CONCERTINA_LIBRARY_MEMBER)
};

/// Returns why NCCL cannot be used, or "" if it can. Loads the library on the first call.
std::string nccl_problem();
/// Returns the library. Requires that nccl_problem() is "".
const Nccl& nccl();

}  // namespace concertina
