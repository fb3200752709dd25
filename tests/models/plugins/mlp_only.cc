// A model without attention: embedding, one MLP half-block per layer, tied head.
#include "models/model.h"
#include "models/task.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_mlp_only(const ModelConfig& config) {
  check_sizes(config);
  const UnitShape shape = unit_shape(config);
  const MlpSpec mlp{.hidden = option<std::int64_t>(config.options, "widening") * config.width,
                    .std = 0.1F,
                    .residual_std = 0.1F};
  ModelPlan plan(config);
  plan.add("embedding", embedding(shape, {.vocabulary = config.vocab, .std = 0.1F}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    plan.add("mlp", half_block(shape, NormPlace::before_branch, {}, mlp_branch(shape, mlp)));
  plan.add("head", find_task(config.task)
                       .head({.shape = shape,
                              .vocabulary = config.vocab,
                              .causal = true,
                              .norm = NormSpec(),
                              .std = 0.1F}));
  return std::move(plan).build();
}

}  // namespace

Family mlp_only() {
  return {
      .make = make_mlp_only,
      .options = {{"widening", std::int64_t{4}, "columns of the MLP, as multiples of the width"}}};
}

}  // namespace concertina::families
