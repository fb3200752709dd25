// The layout of a run on fewer ranks than it was meant for.
// Invariants: pure but for the files that a config names; the batch, its microbatches and the
// leaves of its sums stay, and with them every bit of the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

/// A number of ranks, and the arguments of `train` that make `config` fit it.
struct FittingLayout {
  int ranks = 1;
  std::vector<std::string> arguments{};  // none where the config fits as it is
};

/// The largest number of ranks up to `most` that the run can have: as its config says where that
/// goes, else with the fastest layout that the planner finds. None if there is no layout at all.
std::optional<FittingLayout> layout_for(const RunConfig& config, int most);

}  // namespace concertina
