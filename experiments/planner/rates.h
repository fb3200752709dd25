// What the parts of the step model share: bytes over rates.
// Invariant: pure; nothing is negative.
#pragma once

#include <cmath>

#include "experiments/planner/pass_seconds.h"

namespace concertina {

/// Seconds of so many bytes or FLOPs; 0 where the rate is not known.
inline double over(double amount, double rate) {
  return rate > 0 && std::isfinite(rate) ? amount / rate : 0;
}

/// Bytes a second between devices of one host: in shared memory, the receiver's copy.
double local_rate(const MachineModel& machine);

/// Bytes of one element of an activation or of a computed gradient.
double element_bytes(const RunConfig& config);
/// Bytes of one microbatch's activations between two layers.
double boundary_bytes(const RunConfig& config, int samples);

}  // namespace concertina
