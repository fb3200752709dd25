// Which tokens were masked (BERT, Devlin et al. 2019): a map, a GELU and a norm, then logits over
// the vocabulary by the token table, with a bias.
#include "models/task.h"
#include "models/units/head.h"

namespace concertina::model_tasks {
namespace {

UnitPlan masked_lm_head(const Trunk& trunk) {
  const std::int64_t width = trunk.shape.width;
  HeadSpec spec;
  spec.norm = trunk.norm;
  spec.transform =
      TransformSpec{.map = {.name = "transform", .in = width, .out = width, .std = trunk.std},
                    .activation = TransformSpec::Activation::gelu_erf,
                    .norm = NormSpec{.eps = trunk.norm_eps, .name = "transform.ln"}};
  spec.logits = token_logits(trunk);
  spec.reads = {targets_field(trunk.shape.tokens)};
  return head(trunk.shape, spec);
}

}  // namespace

extern const Task masked_lm{
    .head = masked_lm_head, .about = "predict the tokens that were masked", .masks = true};

}  // namespace concertina::model_tasks
