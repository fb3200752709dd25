// Keeps the layout: a freeze removes the work of the frozen units and moves nothing.
#include "parallel/repartition/layout_policy.h"

namespace concertina {
namespace {

LayoutDecision decide(const LayoutView& view) {
  return {.step_seconds = view.forecast.step_seconds(view.now), .reason = "the layout stays"};
}

}  // namespace

LayoutPolicy layout_policy_none() {
  return {.decide = decide, .keys = {}, .about = "keeps the layout"};
}

}  // namespace concertina
