// The best that a schedule allows, given the times of its actions.
// Invariant: pure; transfers, reductions and waits take no time in it.
#pragma once

#include <vector>

#include "parallel/simulate/stage_means.h"

namespace concertina {

/// Seconds of the STEP of `row` without its waits for other ranks; 0 if it has none.
double step_seconds(const std::vector<Action>& row, const StepRecord& record);

/// The makespan of `plan` if all actions of a kind and stage take their mean, and STEP on each rank
/// what `steps` says.
double schedule_bound(const Plan& plan, const Layout& layout, const StageMeans& means,
                      const std::vector<double>& steps);

}  // namespace concertina
