// Number of layers that a policy keeps frozen in each epoch, if known before a launch.
// Invariant: pure.
#pragma once

#include <vector>

#include "parallel/policies/freeze_rules.h"

namespace concertina {

/// Returns the number of frozen layers in each of `epochs` epochs, with decisions at their ends.
/// Assumes that loss and learning rate are constant and that gradient norms decrease from layer to
/// layer, in which case pipetransformer freezes layers as fast as it can. Throws Error{bad_input}
/// if the policy depends on anything else.
std::vector<double> foreseen_course(const FreezeRules& rules, int epochs,
                                    std::int64_t steps_per_epoch);

}  // namespace concertina
