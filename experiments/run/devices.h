// The backend named by `run.device`, and its memory. Invariant: backends are created from a
// device's name only here; everything that the machine or the build lacks is reported before
// anything is allocated.
#pragma once

#include <memory>
#include <optional>

#include "core/backend.h"
#include "experiments/config/config.h"
#include "experiments/machine/machine.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// The backend for a single process: a CPU with `threads` threads, or GPU `gpu`.
std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, int gpu = 0);
/// The backend for this rank: the ranks of a host use its GPUs round-robin. Collective over
/// `world`.
std::unique_ptr<Backend> make_backend(const RunConfig& config, int threads, Communicator& world);

/// A backend only for querying the sizes of operators: it needs no device and may have no kernels.
std::unique_ptr<Backend> make_sizing_backend(const RunConfig& config, int threads);

/// The memory in which a single process would place tensors; nullopt if unknown.
std::optional<MemoryBytes> device_memory(const RunConfig& config);

}  // namespace concertina
