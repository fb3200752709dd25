// The costs of a run's plan for the simulator: from its costs.json, and from the actions and
// messages of a traced run. Invariants: pure except for reading costs.json, which a killed run
// lacks without affecting its report; values are means over the recorded steps, so a simulation
// with them predicts the run they come from.
#pragma once

#include <optional>
#include <string>

#include "experiments/record/run_trace.h"
#include "parallel/simulate/costs.h"

namespace concertina {

struct KnownCosts {
  std::optional<Costs> costs;  // nullopt: see `missing`
  std::string missing;         // why there are none
};

/// The costs that the run in `directory` measured, for `plan` with `layout`.
KnownCosts known_costs(const std::string& directory, const Layout& layout, const Plan& plan);

/// The traced costs of computing, posting and updates, and those of messages unless `known`
/// includes the costs of links and of the gradient exchange.
Costs costs_of(const RunTrace& trace, const std::optional<Costs>& known);

}  // namespace concertina
