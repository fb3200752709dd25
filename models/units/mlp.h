// MLPs as branches.
#pragma once

#include <string_view>
#include <vector>

#include "models/units/block.h"

namespace concertina {

/// The names that config keys have for the activations of an MLP: gelu (x Phi(x)), gelu_tanh, relu,
/// silu.
std::vector<std::string_view> activation_names();
/// The activation of a name, which is one of them.
Epilogue::Kind activation_of(std::string_view name);

/// u = f(h Wup + b) Wdown + b, f the activation (GPT-2, BERT), or gated (SwiGLU, Shazeer 2020;
/// Llama): u = (silu(h Wgate) * (h Wup)) Wdown.
/// Parameters: up.weight [C,F], up.bias [F], down.weight [F,C], down.bias [C]; of a gated MLP
/// gate_up.weight [C,2F], the gate's columns first, and down.weight [F,C].
struct MlpSpec {
  std::int64_t hidden = 0;                           // F
  Epilogue::Kind activation = Epilogue::Kind::gelu;  // not of a gated MLP
  float std = 0;                                     // of the weights' init
  float residual_std = 0;                            // of the map into the skip
  bool gated = false;
};

BranchPlan mlp_branch(const UnitShape& shape, const MlpSpec& spec);

}  // namespace concertina
