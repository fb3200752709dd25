// The layout of a run on fewer ranks than planned. Invariants: pure except for the files named by a
// config; the batch, its microbatches and the leaves of sums, and so all results, stay the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

/// A number of ranks, and the arguments of `train` that make `config` fit it.
struct FittingLayout {
  int ranks = 1;
  std::vector<std::string> arguments{};  // empty if the config already fits
};

/// The largest number of ranks up to `most` on which the run is possible: with the layout of its
/// config if that fits, otherwise with the planner's fastest layout. nullopt if there is none.
std::optional<FittingLayout> layout_for(const RunConfig& config, int most);

}  // namespace concertina
