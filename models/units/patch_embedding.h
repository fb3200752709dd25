// What an image becomes (ViT, Dosovitskiy et al. 2021): its N patches of P x P pixels as rows,
// mapped to the width; output[S (N+1),C] = dropout(class token and patches + positions).
// Parameters: patch.weight [channels P P,C] in the order (channel, y, x), patch.bias [C], cls [C],
// wpe [N+1,C]. Reads image.
#pragma once

#include "models/units/unit.h"

namespace concertina {

struct PatchEmbeddingSpec {
  std::int64_t channels = 0, size = 0, patch = 0;  // an image [channels,size,size]; P divides size
  float std = 0;                                   // of the init
  std::int64_t patches() const { return (size / patch) * (size / patch); }
};

/// `shape`: its tokens are the patches and the class token.
UnitPlan patch_embedding(const UnitShape& shape, const PatchEmbeddingSpec& spec);

}  // namespace concertina
