// Detects policies that can never act, so that a mistyped key is reported, and policies that depend
// on timing. Invariant: pure; the result never affects training.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/config/config.h"

namespace concertina {

/// The decision points of a freeze policy. A decision after the last step is too late.
struct FreezePoints {
  std::int64_t steps = 0;      // of the whole run
  std::int64_t every = 0;      // steps between decisions; 0: at the end of each epoch
  std::int64_t epochs = 0;     // that end before the last step
  double steps_per_epoch = 1;  // > 0
};

/// Whether a decision before the last step may freeze anything, as far as can be predicted.
bool may_freeze(const FreezeRules& rules, const FreezePoints& points);

/// Why the policy will never freeze anything, or which options have a time after the last decision.
/// Empty if every option takes effect, or if that depends on the run's metrics.
std::string idle_freezing(const FreezeRules& rules, const FreezePoints& points);

/// Layers that freeze after a given step.
struct ForeseenFreeze {
  std::int64_t step = 0;
  int layers = 0;
};

/// The freezes predicted for a policy with FreezePolicy::foreseen if gradient norms decrease from
/// layer to layer. Empty for other policies, or if layers may be unfrozen.
std::vector<ForeseenFreeze> foreseen_freezes(const FreezeRules& rules, const FreezePoints& points);

/// A warning that the options freeze layers before the `warmup` steps of learning-rate warm-up end;
/// empty if they do not.
std::string early_freezing(const FreezeRules& rules, const FreezePoints& points,
                           std::int64_t warmup);

/// The reason why elastic.policy will never decide; empty if it will, or if there is no policy.
/// `freezes`: whether the run may freeze anything after its start.
std::string idle_repartition(const RunConfig& config, bool freezes);

/// A warning that rerunning the command may give different weights; empty if it cannot.
std::string timed_training(const RunConfig& config);

}  // namespace concertina
