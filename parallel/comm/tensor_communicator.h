// Selects how tensors pass between ranks: directly, with NCCL, or through host memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Returns the values of parallel.transport.
std::vector<std::string_view> transport_names();

/// Returns the version of NCCL, or why it cannot be used; empty if the build has no NCCL.
std::string nccl_status();

/// Returns a communicator over the ranks of `control` for views in `memory`; both must outlive it.
/// Returns null if `control` can access `memory` directly. "auto" uses NCCL if it works, otherwise
/// host memory, and rank 0 logs why. Throws Error{bad_input} if "nccl" does not work. Collective.
std::unique_ptr<Communicator> tensor_communicator(Communicator& control, Memory& memory,
                                                  std::string_view transport = "auto");

}  // namespace concertina
