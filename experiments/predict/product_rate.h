// How fast this machine multiplies what a model multiplies: the rate behind `plan`'s estimate.
// Invariant: takes a fraction of a second and little memory, however large the model is.
#pragma once

#include "experiments/config/config.h"
#include "models/model.h"

namespace concertina {

struct ProductRate {
  double flops_per_s = 0;
  LinearShape shape;  // that was measured
};

/// The model's largest linear map (most multiplications), cut to sizes beyond which the rate does
/// not change, run forward and backward on the config's device. Throws Error{bad_input} if this
/// machine has none.
ProductRate measure_product_rate(const Model& model, const RunConfig& config, int threads);

}  // namespace concertina
