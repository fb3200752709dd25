// The costs of a run's plan for the simulator: those of its costs.json, and those that the actions
// and messages of a traced run took.
// Invariants: pure but for reading costs.json; a run that was killed has no such file, and its
// report is a report all the same; means over the recorded steps, so that a simulation with them
// predicts the run that they come from.
#pragma once

#include <optional>
#include <string>

#include "experiments/record/run_trace.h"
#include "parallel/simulate/costs.h"

namespace concertina {

struct KnownCosts {
  std::optional<Costs> costs;  // of the plan
  std::string missing;         // why there are none
};

/// The costs that the run in `directory` measured, for `plan` at `layout`.
KnownCosts known_costs(const std::string& directory, const Layout& layout, const Plan& plan);

/// The traced costs of compute, posting and updates; those of messages too unless `known` says what
/// links and gradients between holders take.
Costs costs_of(const RunTrace& trace, const std::optional<Costs>& known);

}  // namespace concertina
