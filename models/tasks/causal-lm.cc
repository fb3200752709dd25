// Next-token prediction at each position: logits over the vocabulary, from the token table or a
// separate map.
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

UnitPlan causal_lm_head(const Trunk& trunk) {
  HeadSpec spec;
  spec.norm = trunk.norm;
  spec.logits = token_logits(trunk);
  spec.logits.bias = trunk.logits_bias;
  spec.reads = {targets_field(trunk.shape.tokens)};
  return head(trunk.shape, spec);
}

}  // namespace

Task causal_lm() {
  return {.head = causal_lm_head,
          .about = "predict the next token at each position",
          .vocabulary = true};
}

}  // namespace concertina::model_tasks
