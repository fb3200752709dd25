// Predicts whether each token is even: two classes per row, for any family.
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

UnitPlan parity_head(const Trunk& trunk) {
  HeadSpec spec;
  spec.norm = trunk.norm;
  spec.logits = {.name = "parity", .in = trunk.shape.width, .out = 2, .std = trunk.std};
  spec.reads = {targets_field(trunk.shape.tokens)};
  return head(trunk.shape, spec);
}

}  // namespace

Task parity() {
  return {.head = parity_head, .about = "tell even tokens from odd ones"};
}

}  // namespace concertina::model_tasks
