// FLOPs of GPT-2 as published formulas have them, of any size and without making its units: what a
// search over layouts computes with.
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

/// FLOPs of a step with what is computed twice, of which hardware FLOPs utilization (HFU) is: all
/// of equation 3 of Narayanan et al. 2021, 96 B s l h^2 (1 + s/(6h) + V/(16 l h)), where layers are
/// recomputed in full. Where nothing is: model_flops() of experiments/record/utilization.h.
double hardware_flops(const RunConfig& config, Recompute recompute);

}  // namespace concertina
