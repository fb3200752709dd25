// Converts the durations of units and the links of a machine to the costs of any plan for a model.
// Invariant: pure; the plan may differ in schedule, partition and world from the run in which the
// durations were measured.
#pragma once

#include <vector>

#include "parallel/plan/assignment.h"
#include "parallel/plan/partition.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Seconds that the units of a stage take on a rank with this factor (rank_factor()).
StageCosts stage_seconds(const std::vector<UnitSeconds>& units, UnitRange stage, double factor = 1);

/// `units[u]` gives the seconds of the model's unit u for the passes that it runs in `assignment`.
Costs plan_costs(const Job& job, const Assignment& assignment,
                 const std::vector<UnitSeconds>& units, const MachineModel& machine);

}  // namespace concertina
