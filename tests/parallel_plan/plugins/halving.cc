// Freezes half of the trained layers at every decision: a freeze policy from outside.
#include "parallel/policies/freeze_policy.h"

namespace concertina {
namespace {

FreezeDecision decide(const FreezeView& view, const OptionValues& options) {
  const int left = view.layers - view.now().frozen;
  const auto part = static_cast<int>(option<std::int64_t>(options, "part"));
  return {.frozen = view.now().frozen + left / part, .reason = "a part of the rest"};
}

}  // namespace

FreezePolicy policy_halving() {
  return {.decide = decide,
          .options = {{.name = "part",
                       .default_value = std::int64_t{2},
                       .help = "of the layers that train",
                       .low = 1,
                       .high = 10}},
          .about = "half of the rest"};
}

}  // namespace concertina
