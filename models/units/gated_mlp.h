// A gated MLP as a branch (SwiGLU, Shazeer 2020; Llama): u = (silu(h Wgate) * (h Wup)) Wdown.
// Parameters: gate_up.weight [C,2F], the gate's columns first, and down.weight [F,C].
#pragma once

#include "models/units/half_block.h"

namespace concertina {

struct GatedMlpSpec {
  std::int64_t hidden = 0;  // F
  float std = 0;            // of the weights' init
  float residual_std = 0;   // of the map into the skip
};

BranchPlan gated_mlp_branch(const UnitShape& shape, const GatedMlpSpec& spec);

}  // namespace concertina
