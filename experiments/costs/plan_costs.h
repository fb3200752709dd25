// From what units take and a machine's links to the costs of any plan of the same model.
// Invariant: pure; the plan may have another schedule, partition or world than the run that the
// seconds were measured in.
#pragma once

#include <vector>

#include "experiments/costs/machine_model.h"
#include "experiments/run/run_plan.h"
#include "parallel/runtime/unit_clock.h"

namespace concertina {

/// The FLOPs of each unit's products at one rate; everything else is free. `costs`: RunPlan::costs.
std::vector<UnitSeconds> analytic_seconds(const std::vector<UnitCost>& costs, double flops_per_s);

/// What `config` trains, on one rank: config.parallel does not count. For place().
RunPlan unplaced_run(RunConfig config);
/// Puts a run on another layout, by another plan; its microbatches and leaves stay.
void place(RunPlan& run, Layout layout, Plan plan);

/// `units[u]`: seconds of unit u of the model, as far as it trains in `run`.
Costs plan_costs(const RunPlan& run, const std::vector<UnitSeconds>& units,
                 const MachineModel& machine);

}  // namespace concertina
