// The backend that `run.device` names, and the memory that it has.
// Invariant: nobody else makes a backend from a device's name; what the machine or the build lacks
// is one error, before anything is allocated.
#pragma once

#include <memory>
#include <optional>

#include "core/backend.h"
#include "experiments/config/config.h"
#include "experiments/machine/machine.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// The backend of one process by itself: a CPU's with `threads` threads, or that of GPU `gpu`.
std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, int gpu = 0);
/// The backend of this rank: the ranks of a host take its GPUs in turn. Collective over `world`.
std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, Communicator& world);

/// Only to ask what operators take: it needs no device, and may have no kernels.
std::unique_ptr<Backend> make_sizing_backend(const RunConfig& config, int threads);

/// Where tensors would be if this process ran by itself; empty if that is not known.
std::optional<MemoryBytes> device_memory(const RunConfig& config);

}  // namespace concertina
