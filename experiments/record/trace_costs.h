// What a traced run's actions and messages took, as costs for the simulator.
// Invariant: pure; means over the recorded steps, so that a simulation with them predicts the run
// that they come from.
#pragma once

#include <optional>

#include "experiments/record/run_trace.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// The costs of compute, posting and updates; those of messages too unless `known` says what links
/// and gradients between holders take (experiments/record/known_costs.h).
Costs costs_of(const RunTrace& trace, const std::optional<Costs>& known);

}  // namespace concertina
