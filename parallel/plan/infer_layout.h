// Infers the layout of a plan, for schedules read from files.
// Invariant: the result has as many ranks as the plan has rows, and requires no more forwards of a
// stage than there are F, B and I in the plan.
#pragma once

#include <string>

#include "parallel/plan/schedule.h"

namespace concertina {

/// Places each stage on the rank whose row contains its forwards, with one unit per stage of its
/// pipeline. Consecutive stages that share half of their microbatches belong to one pipeline.
/// Throws RefusedPlan (parallel/plan/plan_grid.h) for the action that conflicts with the others.
Layout infer_layout(const Plan& plan, const std::string& where);

}  // namespace concertina
