// Prediction of masked tokens (BERT, Devlin et al. 2019): a linear map, GELU and a norm, then
// logits over the vocabulary from the token table, with a bias. If the number of masked tokens per
// sample is bounded, only their rows are computed (gather_indexes in BERT's own code).
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

RowsRead masked_rows(const Trunk& trunk) {
  if (trunk.targets == 0) return {};
  return {RowsRead::Which::targets, trunk.targets};
}

UnitPlan masked_lm_head(const Trunk& trunk) {
  const std::int64_t width = trunk.shape.width;
  HeadSpec spec;
  spec.rows = masked_rows(trunk);
  spec.norm = trunk.norm;
  spec.transform =
      TransformSpec{.map = {.name = "transform", .in = width, .out = width, .std = trunk.std},
                    .activation = trunk.activation,
                    .norm = NormSpec{.eps = trunk.norm_eps, .name = "transform.ln"}};
  spec.logits = token_logits(trunk);
  spec.reads = {targets_field(trunk.shape.tokens, trunk.targets)};
  return head(trunk.shape, spec);
}

}  // namespace

Task masked_lm() {
  return {.head = masked_lm_head,
          .about = "predict masked tokens",
          .masks = true,
          .reads = masked_rows,
          .vocabulary = true};
}

}  // namespace concertina::model_tasks
