// Self-attention as a branch: qkv = h Wqkv + b, then optionally an RMS norm and a rotation by
// position (RoPE) of each q and k head; y = attention(qkv), u = y Wproj + b. In training, dropout
// applies to the probabilities before they weight v (attn_pdrop of GPT-2), with a separate kind of
// mask (core/rng.h). There are H query heads, and K key/value heads, of D columns. Parameters:
// qkv.weight [C,(H+2K)D], qkv.bias [(H+2K)D], proj.weight [HD,C], proj.bias [C], where the biases
// are optional; q_norm.weight and k_norm.weight [D] with norms. Reads lengths if samples are
// padded, or starts if they are packed.
#pragma once

#include <optional>

#include "core/rotary.h"
#include "models/units/block.h"

namespace concertina {

struct AttentionSpec {
  std::int64_t heads = 0;     // H
  std::int64_t kv_heads = 0;  // K, a divisor of H; 0: H
  std::int64_t head_dim = 0;  // D; 0: C/H
  bool causal = true;
  bool padded = false;  // samples end in padding, which is masked
  bool qkv_bias = true, proj_bias = true;
  RotarySpec rotary{};              // columns 0: the whole head
  std::optional<float> norm_eps{};  // epsilon of the head norms; none: no norms
  float std = 0;                    // standard deviation of the initial weights
  float residual_std = 0;           // the same for the output projection
};

BranchPlan attention_branch(const UnitShape& shape, const AttentionSpec& spec);

}  // namespace concertina
