// Which layers a policy freezes in each epoch, where that is known before a launch.
// Invariant: pure.
#pragma once

#include <vector>

#include "parallel/policies/freeze_rules.h"

namespace concertina {

/// Frozen layers during each of `epochs` epochs, with decisions at their ends, where the loss and
/// the learning rate stay and each layer has a smaller gradient norm than the one before: the
/// fastest course that pipetransformer allows. Error{bad_input}: the policy depends on more than
/// that.
std::vector<double> foreseen_course(const FreezeRules& rules, int epochs,
                                    std::int64_t steps_per_epoch);

}  // namespace concertina
