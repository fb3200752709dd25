// What tokens become: x = wte[token] (+ wpe[position]) (+ wtt[type]); output[R,C] =
// dropout(norm(x)), where there is a norm. Parameters: wte [V,C], shared by the name "wte" unless
// `tied` is false; wpe [T,C]; wtt [K,C]; the norm's. Reads tokens, and with types also types.
#pragma once

#include <optional>

#include "models/units/norm.h"

namespace concertina {

/// The shared token table [V,C].
inline constexpr std::string_view kTokenTable = "wte";

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

}  // namespace concertina
