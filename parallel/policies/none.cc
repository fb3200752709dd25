// Freezes nothing beyond what is frozen already.
#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

FreezeDecision decide(const FreezeView& view, const OptionValues&) {
  return {.frozen = view.now().frozen, .reason = "nothing freezes during the run"};
}

}  // namespace

FreezePolicy policy_none() {
  return {.decide = decide,
          .keys = {},
          .foreseen = true,
          .about = "what freeze.units froze at the start"};
}

}  // namespace concertina
