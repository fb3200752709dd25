// The layout that a plan implies. For schedules read from files.
// Invariant: what it returns has as many ranks as the plan has rows, and no more forwards are due
// on a stage than the plan has F, B and I in all.
#pragma once

#include <string>

#include "parallel/plan/schedule.h"

namespace concertina {

/// Each stage on the rank whose row holds its forwards, one unit a stage of its pipeline. Stages
/// that share half of their microbatches with the one before them are of the same pipeline. Throws
/// RefusedPlan (parallel/plan/plan_grid.h) at the action that contradicts the others.
Layout infer_layout(const Plan& plan, const std::string& where);

}  // namespace concertina
