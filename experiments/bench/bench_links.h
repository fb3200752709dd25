// Measures all pairs of ranks for `concertina bench links`.
#pragma once

#include "experiments/predict/machine_file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct LinkBenchOptions {
  int bytes = 1 << 20;  // size of a large message
};

/// Measures the links between all pairs of ranks, and medians by class; with more than 16, only
/// the classes "one host" and "two hosts". Collective. Throws Error{bad_input} for a single rank.
MachineModel bench_links(Communicator& world, const LinkBenchOptions& options);

}  // namespace concertina
