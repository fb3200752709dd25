// NCCL, found at run time: a program that has it in its build starts without it.
// Source of what the calls promise: NCCL user guide 2.28, docs.nvidia.com/deeplearning/nccl.
#pragma once

#include <nccl.h>

#include <string>

namespace concertina {

/// The functions in use, under their own names.
struct Nccl {
  decltype(&::ncclGetVersion) get_version;
  decltype(&::ncclGetUniqueId) get_unique_id;
  decltype(&::ncclCommInitRankConfig) comm_init;
  decltype(&::ncclCommSplit) comm_split;
  decltype(&::ncclCommFinalize) comm_finalize;
  decltype(&::ncclCommDestroy) comm_destroy;
  decltype(&::ncclCommAbort) comm_abort;
  decltype(&::ncclCommGetAsyncError) comm_state;
  decltype(&::ncclGetErrorString) error_string;
  decltype(&::ncclGetLastError) last_error;
  decltype(&::ncclGroupStart) group_start;
  decltype(&::ncclGroupEnd) group_end;
  decltype(&::ncclSend) send;
  decltype(&::ncclRecv) receive;
  decltype(&::ncclBroadcast) broadcast;
};

/// Why NCCL cannot be used here, or "". Loads the library at the first call.
std::string nccl_problem();
/// The library; to be called only where nccl_problem() is "".
const Nccl& nccl();

}  // namespace concertina
