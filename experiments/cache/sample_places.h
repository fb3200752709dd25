// Whether a sample has the same bits wherever in its microbatch it is.
// Kernels cut the rows of a microbatch into tiles, and may add up in another order in one that is
// shorter or elsewhere. What they do is a matter of processor, library and shape, so it is tried.
#pragma once

#include "core/memory.h"
#include "core/model/batch.h"
#include "core/model/model_spec.h"
#include "core/model/stage.h"

namespace concertina {

/// Runs the first `units` units of `stage`, which begins `model` and has them frozen, on some
/// microbatches of `source`, each with its samples in several rotations. `memory`: of the stage's
/// tensors. Between two steps.
bool same_in_any_place(Stage& stage, int units, const ModelSpec& model, BatchSource& source,
                       Memory& memory);

}  // namespace concertina
