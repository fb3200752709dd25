// Self-attention as a branch: qkv = h Wqkv + b, q and k rotated by their position where the spec
// says so (RoPE), y = attention(qkv), u = y Wproj + b. H query heads and K key and value heads of
// D = C/H columns.
// Parameters: qkv.weight [C,(H+2K)D], proj.weight [C,C], and with biases qkv.bias [(H+2K)D] after
// the first and proj.bias [C] after the second. Reads lengths, where samples are padded.
#pragma once

#include "models/units/half_block.h"

namespace concertina {

struct AttentionSpec {
  std::int64_t heads = 0;     // H, divides the width
  std::int64_t kv_heads = 0;  // K, divides H; 0: H
  bool causal = true;
  bool padded = false;  // samples end in padding, which no query sees
  bool bias = true;
  double rotary_theta = 0;  // base of the rotation's wavelengths; 0: none
  float std = 0;            // of the weights' init
  float residual_std = 0;   // of the projection into the skip
};

BranchPlan attention_branch(const UnitShape& shape, const AttentionSpec& spec);

}  // namespace concertina
