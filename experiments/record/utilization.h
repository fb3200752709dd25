// Model FLOPs utilization (MFU): the share of the devices' peak rate that a step's model FLOPs
// take. Invariant: model FLOPs are a definition, not a count of what runs: the same whatever the
// kernels, the layout, what is computed twice and what freezing leaves out.
#pragma once

#include <string_view>

#include "core/model_spec.h"
#include "experiments/config/config.h"

namespace concertina {

/// FLOPs of a step of `microbatches`, of any family and task: three times those of its units'
/// forward pass (UnitCost::model_flops), as a backward pass has twice its forward pass. What counts
/// is products: linear maps, of the head only for the rows that have a loss, and attention's two,
/// in full even where a causal mask needs half of them or samples are padded. Lookups, norms and
/// all else that is elementwise count nothing. Of GPT-2 that is 72 B s l h^2 (1 + s/(6h) +
/// V/(12 l h)) for B sequences of s tokens, l layers of width h and V tokens in the vocabulary:
/// Narayanan et al. 2021 ("Efficient Large-Scale Language Model Training on GPU Clusters Using
/// Megatron-LM"), equation 3, without the second forward pass of recomputation.
double model_flops(const ModelSpec& model, int microbatches);

/// FLOP/s of one rank's device: `run.peak_tflops`, or that of dense products in
/// `numerics.compute` by the data sheet of the GPU that `device` names. 0: not known.
double peak_flops_per_s(const RunConfig& config, std::string_view device);

}  // namespace concertina
