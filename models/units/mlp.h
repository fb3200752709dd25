// MLPs as branches.
#pragma once

#include <string_view>
#include <vector>

#include "models/units/block.h"

namespace concertina {

/// Returns the config values for the activation of an MLP: gelu (x Phi(x)), gelu_tanh, relu, silu.
std::vector<std::string_view> activation_names();
/// Returns the activation called `name`, which must be one of these values.
Epilogue::Kind activation_of(std::string_view name);

/// u = f(h Wup + b) Wdown + b with activation f (GPT-2, BERT), or gated (SwiGLU, Shazeer 2020;
/// Llama): u = (silu(h Wgate) * (h Wup)) Wdown.
/// Parameters: up.weight [C,F], up.bias [F], down.weight [F,C], down.bias [C]; for a gated MLP
/// gate_up.weight [C,2F], with the gate's columns first, and down.weight [F,C].
struct MlpSpec {
  std::int64_t hidden = 0;                           // F
  Epilogue::Kind activation = Epilogue::Kind::gelu;  // not used by a gated MLP
  float std = 0;                                     // standard deviation of the initial weights
  float residual_std = 0;                            // the same for the down projection
  bool gated = false;
};

BranchPlan mlp_branch(const UnitShape& shape, const MlpSpec& spec);

}  // namespace concertina
