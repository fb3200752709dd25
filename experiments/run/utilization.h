// Model FLOPs utilization (MFU): the share of the devices' peak rate that a step's model FLOPs
// take. Invariant: model FLOPs are a definition, not a count of what runs: the same whatever the
// kernels, the layout and what is computed twice.
#pragma once

#include <string_view>

#include "experiments/config/config.h"

namespace concertina {

/// FLOPs of a step: 72 B s l h^2 (1 + s/(6h) + V/(12 l h)) for B sequences of s tokens, l layers of
/// width h and V tokens in the vocabulary: Narayanan et al. 2021 ("Efficient Large-Scale Language
/// Model Training on GPU Clusters Using Megatron-LM"), equation 3, without the second forward pass
/// of recomputation. Attention counts in full, though a causal mask needs half of it. 0 for a
/// family other than "gpt".
double model_flops(const RunConfig& config);

/// FLOP/s of one rank's device: `run.peak_tflops`, or that of dense products in
/// `numerics.compute` by the data sheet of the GPU that `device` names. 0: not known.
double peak_flops_per_s(const RunConfig& config, std::string_view device);

}  // namespace concertina
