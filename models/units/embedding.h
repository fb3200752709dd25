// The first unit of a model: a token or an image embedding.
#pragma once

#include <optional>

#include "models/units/norm.h"

namespace concertina {

/// The shared token table [V,C].
inline constexpr std::string_view kTokenTable = "wte";

/// Token embedding: x = wte[token] (+ wpe[position]) (+ wtt[type]); output[R,C] = dropout(norm(x)),
/// where the norm is optional. Parameters: wte [V,C], shared under this name unless `tied` is
/// false; wpe [T,C]; wtt [K,C]; and the norm's. Reads tokens; also types if there are several,
/// and starts if samples are packed and positions are embedded.
struct EmbeddingSpec {
  std::int64_t vocabulary = 0;  // V
  bool tied = true;             // shared with the head
  bool positions = true;
  bool counts_positions = false;  // in the graph, positions are 0, 1, ... instead of an input
  std::int64_t types = 0;         // K; 0: no types
  std::optional<NormSpec> norm{};
  float std = 0;  // standard deviation of the initial tables
};

UnitPlan embedding(const UnitShape& shape, const EmbeddingSpec& spec);

/// Image embedding (ViT, Dosovitskiy et al. 2021): each of the N patches of P x P pixels is a row,
/// mapped to the width; output[S (N+1),C] = dropout(class token and patches + positions).
/// Parameters: patch.weight [channels P P,C] in the order (channel, y, x), patch.bias [C], cls [C],
/// wpe [N+1,C]. Reads image.
struct PatchEmbeddingSpec {
  std::int64_t channels = 0, size = 0, patch = 0;  // an image [channels,size,size]; P divides size
  float std = 0;                                   // standard deviation of the initial weights
  std::int64_t patches() const { return (size / patch) * (size / patch); }
};

/// The tokens of `shape` are the patches and the class token.
UnitPlan patch_embedding(const UnitShape& shape, const PatchEmbeddingSpec& spec);

}  // namespace concertina
