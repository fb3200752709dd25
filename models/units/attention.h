// Self-attention as a branch: qkv = h Wqkv + b; where the spec says so, each head of q and of k
// goes through an RMS norm and is rotated by its position (RoPE); y = attention(qkv), u = y Wproj +
// b. A training step drops probabilities before they weigh v (attn_pdrop of GPT-2), by a mask of
// its own kind (core/rng.h). H query heads and K key and value heads of D columns. Parameters:
// qkv.weight [C,(H+2K)D], qkv.bias [(H+2K)D], proj.weight [HD,C], proj.bias [C], those of the
// biases where there are any; q_norm.weight and k_norm.weight [D] with norms. Reads lengths, where
// samples are padded, or starts, where they are packed.
#pragma once

#include <optional>

#include "core/rotary.h"
#include "models/units/block.h"

namespace concertina {

struct AttentionSpec {
  std::int64_t heads = 0;     // H
  std::int64_t kv_heads = 0;  // K, divides H; 0: H
  std::int64_t head_dim = 0;  // D; 0: C/H
  bool causal = true;
  bool padded = false;  // samples end in padding, which no query sees
  bool qkv_bias = true, proj_bias = true;
  RotarySpec rotary{};              // columns 0: all of a head
  std::optional<float> norm_eps{};  // of the norms of heads; none: there are none
  float std = 0;                    // of the weights' init
  float residual_std = 0;           // of the projection into the skip
};

BranchPlan attention_branch(const UnitShape& shape, const AttentionSpec& spec);

}  // namespace concertina
