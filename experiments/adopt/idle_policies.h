// The policies of a run that can never do anything, so that a mistyped key is reported; and those
// that go by the clock.
// Invariant: pure; what it says never changes what is trained.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/config/config.h"

namespace concertina {

/// When a freeze policy decides. A decision after the last step comes too late.
struct FreezePoints {
  std::int64_t steps = 0;      // of the run
  std::int64_t every = 0;      // steps between decisions; 0: at the ends of epochs
  std::int64_t epochs = 0;     // that end before the last step does
  double steps_per_epoch = 1;  // > 0
};

/// Whether a decision before the last step freezes anything, as far as that can be foreseen.
bool may_freeze(const FreezeRules& rules, const FreezePoints& points);

/// Why the policy will never freeze anything, or which parts of its options no decision reaches;
/// empty where it will, and where that depends on figures of the run.
std::string idle_freezing(const FreezeRules& rules, const FreezePoints& points);

/// Layers that freeze after a step.
struct ForeseenFreeze {
  std::int64_t step = 0;
  int layers = 0;
};

/// The freezes of a run whose policy follows steps and epochs; of one that goes by gradient norms,
/// as FreezePolicy::foreseen has it. Empty where layers may train again.
std::vector<ForeseenFreeze> foreseen_freezes(const FreezeRules& rules, const FreezePoints& points);

/// Says that layers freeze before the learning rate's warm-up of `warmup` steps ends, since the
/// options say so; else empty.
std::string early_freezing(const FreezeRules& rules, const FreezePoints& points,
                           std::int64_t warmup);

/// Why elastic.policy will never decide; empty where it will, or where there is none.
/// `freezes`: whether the run may freeze anything after its start.
std::string idle_repartition(const RunConfig& config, bool freezes);

/// Says that the same command may train other weights, where it may; else empty.
std::string timed_training(const RunConfig& config);

}  // namespace concertina
