// A whole layer whose two branches read the same input and are added to it together (GPT-J, Wang &
// Komatsuzaki 2021; GPT-NeoX, Black et al. 2022):
//   output = x + dropout(attention(norm(x)) + mlp(norm'(x)))
// where norm' is a norm of its own (GPT-NeoX) or the same (GPT-J, Phi).
// Parameters: those of the norm, of norm' ("mlp_ln") where there is one, of attention, of the MLP.
#pragma once

#include "models/units/half_block.h"

namespace concertina {

struct ParallelBlockSpec {
  NormSpec norm{};
  bool shared_norm = false;  // both branches read the same rows
};

UnitPlan parallel_block(const UnitShape& shape, const ParallelBlockSpec& spec, BranchPlan attention,
                        BranchPlan mlp);

}  // namespace concertina
