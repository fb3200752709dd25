// Tests whether a sample gives the same bits at every position in its microbatch. Kernels split the
// rows of a microbatch into tiles and may sum in a different order in a shorter tile or at another
// position. This depends on processor, library and shape, so it is tested by running the kernels.
#pragma once

#include "core/memory.h"
#include "core/model/batch.h"
#include "core/model/model_spec.h"
#include "core/model/stage.h"

namespace concertina {

/// Runs the first `units` units of `stage`, the first stage of `model`, on some microbatches from
/// `source`, each with its samples rotated in several ways. The units must be frozen. `memory`: the
/// memory of the stage's tensors. Must be called between two steps.
bool same_in_any_place(Stage& stage, int units, const ModelSpec& model, BatchSource& source,
                       Memory& memory);

}  // namespace concertina
