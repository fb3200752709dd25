// Model FLOPs utilization (MFU): the share of the devices' peak rate that a step's model FLOPs
// take. Invariant: model FLOPs are a definition, not a count of what runs: the same whatever the
// kernels, the layout and what is computed twice.
#pragma once

#include <string_view>

#include "experiments/config/config.h"

namespace concertina {

/// What is computed a second time in the backward pass, of each layer: nothing, attention's scores
/// and what follows from them up to its output (Korthikanti et al. 2022), or all of it.
enum class Recompute { none, selective, full };
std::string_view name_of(Recompute recompute);

/// FLOPs of the forward pass of one sequence, of s tokens: `products` (linear maps, 24 s h^2) and
/// `attention` (4 s^2 h) of one layer of width h, and `head` (2 s h V) over a vocabulary of V.
/// Attention counts in full, though a causal mask needs half of it. A backward pass has twice
/// these.
struct ForwardFlops {
  double products = 0, attention = 0, head = 0;
};
ForwardFlops forward_flops(const ModelSection& model);

/// FLOPs of a step: 72 B s l h^2 (1 + s/(6h) + V/(12 l h)) for B sequences of s tokens, l layers of
/// width h and V tokens in the vocabulary: Narayanan et al. 2021 ("Efficient Large-Scale Language
/// Model Training on GPU Clusters Using Megatron-LM"), equation 3, without the second forward pass
/// of recomputation. Model FLOPs utilization (MFU) is of these. 0 for a family other than "gpt".
double model_flops(const RunConfig& config);

/// The same with what is computed twice, of which hardware FLOPs utilization (HFU) is: all of
/// equation 3, 96 B s l h^2 (1 + s/(6h) + V/(16 l h)), where layers are recomputed in full.
double hardware_flops(const RunConfig& config, Recompute recompute);

/// FLOP/s of one rank's device: `run.peak_tflops`, or that of dense products in
/// `numerics.compute` by the data sheet of the GPU that `device` names. 0: not known.
double peak_flops_per_s(const RunConfig& config, std::string_view device);

}  // namespace concertina
