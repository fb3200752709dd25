// Freezes nothing beyond freeze.units.
#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

FreezeDecision decide(const FreezeView& view, const OptionValues&) {
  return {.frozen = view.now().frozen, .reason = "the policy freezes nothing during the run"};
}

}  // namespace

FreezePolicy policy_none() {
  return {
      .decide = decide, .keys = {}, .foreseen = true, .about = "only freeze.units, from the start"};
}

}  // namespace concertina
