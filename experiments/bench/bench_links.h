// `concertina bench links`: every pair of ranks, as a machine file.
#pragma once

#include "experiments/predict/machine_file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct LinkBenchOptions {
  int bytes = 1 << 20;  // of a large message
};

/// Links of all pairs (of the classes "one host" and "two hosts" alone beyond 16 ranks), and their
/// medians by class. Collective; throws Error{bad_input} in a world of one.
MachineModel bench_links(Communicator& world, const LinkBenchOptions& options);

}  // namespace concertina
