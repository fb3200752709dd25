// How messages of tensors pass between ranks: straight, by NCCL, or through host memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Values of parallel.transport.
std::vector<std::string_view> transport_names();

/// The version of NCCL, or why it cannot be used; empty where the build has none.
std::string nccl_status();

/// A communicator over the ranks of `control`, for views of `memory`; both outlive it. Null where
/// host code can reach them: then `control` itself does. "auto": NCCL where it works, else through
/// host memory, and rank 0 logs why. Throws bad input where "nccl" does not work. Collective.
std::unique_ptr<Communicator> tensor_communicator(Communicator& control, Memory& memory,
                                                  std::string_view transport = "auto");

}  // namespace concertina
