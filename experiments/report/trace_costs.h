// What a traced run's actions and messages took, as costs for the simulator.
// Invariant: pure; means over the recorded steps, so that a simulation with them predicts the run
// that they come from.
#pragma once

#include "experiments/report/run_trace.h"
#include "parallel/simulate/costs.h"

namespace concertina {

Costs costs_of(const RunTrace& trace);

}  // namespace concertina
