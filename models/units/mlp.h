// An MLP as a branch (GPT-2, BERT): u = gelu(h Wup + b) Wdown + b.
// Parameters: up.weight [C,F], up.bias [F], down.weight [F,C], down.bias [C].
#pragma once

#include "models/units/half_block.h"

namespace concertina {

struct MlpSpec {
  std::int64_t hidden = 0;                     // F
  Epilogue::Kind gelu = Epilogue::Kind::gelu;  // or gelu_erf
  float std = 0;                               // of the weights' init
  float residual_std = 0;                      // of the map into the skip
};

BranchPlan mlp_branch(const UnitShape& shape, const MlpSpec& spec);

}  // namespace concertina
