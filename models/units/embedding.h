// The units that begin a model.
#pragma once

#include <optional>

#include "models/units/norm.h"

namespace concertina {

/// The shared token table [V,C].
inline constexpr std::string_view kTokenTable = "wte";

/// Tokens: x = wte[token] (+ wpe[position]) (+ wtt[type]); output[R,C] = dropout(norm(x)), where
/// there is a norm. Parameters: wte [V,C], shared by the name "wte" unless `tied` is false; wpe
/// [T,C]; wtt [K,C]; the norm's. Reads tokens, with two types or more also types, and with
/// positions, where samples are packed, starts.
struct EmbeddingSpec {
  std::int64_t vocabulary = 0;  // V
  bool tied = true;             // the head uses the same table
  bool positions = true;
  bool counts_positions = false;  // as a graph: they are 0, 1, ... and no input
  std::int64_t types = 0;         // K; 0: none
  std::optional<NormSpec> norm{};
  float std = 0;  // of the tables' init
};

UnitPlan embedding(const UnitShape& shape, const EmbeddingSpec& spec);

/// An image (ViT, Dosovitskiy et al. 2021): its N patches of P x P pixels as rows, mapped to the
/// width; output[S (N+1),C] = dropout(class token and patches + positions). Parameters:
/// patch.weight [channels P P,C] in the order (channel, y, x), patch.bias [C], cls [C], wpe
/// [N+1,C]. Reads image.
struct PatchEmbeddingSpec {
  std::int64_t channels = 0, size = 0, patch = 0;  // an image [channels,size,size]; P divides size
  float std = 0;                                   // of the init
  std::int64_t patches() const { return (size / patch) * (size / patch); }
};

/// `shape`: its tokens are the patches and the class token.
UnitPlan patch_embedding(const UnitShape& shape, const PatchEmbeddingSpec& spec);

}  // namespace concertina
