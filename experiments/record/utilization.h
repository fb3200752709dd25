// Model FLOPs utilization (MFU): the share of the devices' peak rate that a step's model FLOPs
// (model_flops() of core/model_spec.h) take. Invariant: these are a definition, not a count of what
// runs: the same whatever the kernels, the layout, what is computed twice and what freezing leaves
// out.
#pragma once

#include <string_view>

#include "core/model_spec.h"
#include "experiments/config/config.h"

namespace concertina {

/// FLOP/s of one rank's device: `run.peak_tflops`, or that of dense products in
/// `numerics.compute` by the data sheet of the GPU that `device` names. 0: not known.
double peak_flops_per_s(const RunConfig& config, std::string_view device);

}  // namespace concertina
