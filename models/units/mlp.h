// MLPs as branches.
#pragma once

#include "models/units/half_block.h"

namespace concertina {

/// u = gelu(h Wup + b) Wdown + b (GPT-2, BERT).
/// Parameters: up.weight [C,F], up.bias [F], down.weight [F,C], down.bias [C].
struct MlpSpec {
  std::int64_t hidden = 0;                     // F
  Epilogue::Kind gelu = Epilogue::Kind::gelu;  // or gelu_erf
  float std = 0;                               // of the weights' init
  float residual_std = 0;                      // of the map into the skip
};

BranchPlan mlp_branch(const UnitShape& shape, const MlpSpec& spec);

/// Gated (SwiGLU, Shazeer 2020; Llama): u = (silu(h Wgate) * (h Wup)) Wdown.
/// Parameters: gate_up.weight [C,2F], the gate's columns first, and down.weight [F,C].
struct GatedMlpSpec {
  std::int64_t hidden = 0;  // F
  float std = 0;            // of the weights' init
  float residual_std = 0;   // of the map into the skip
};

BranchPlan gated_mlp_branch(const UnitShape& shape, const GatedMlpSpec& spec);

}  // namespace concertina
