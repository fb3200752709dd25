// From what units take and a machine's links to the costs of any plan of the same model.
// Invariant: pure; the plan may have another schedule, partition or world than the run that the
// seconds were measured in.
#pragma once

#include <vector>

#include "parallel/plan/assignment.h"
#include "parallel/plan/partition.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Seconds of the units of a stage on a rank that takes `factor` times as long as others.
StageCosts stage_seconds(const std::vector<UnitSeconds>& units, UnitRange stage, double factor = 1);

/// `units[u]`: seconds of unit u of the model, as far as it trains in `assignment`.
Costs plan_costs(const Job& job, const Assignment& assignment,
                 const std::vector<UnitSeconds>& units, const MachineModel& machine);

}  // namespace concertina
