// GPT-2 (Radford et al. 2019; sizes from the config): embedding, then an attention and an MLP
// half-block per layer, then final norm and a head tied to the token embedding.
// Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of layer l; 2L + 1 head.
#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_gpt(const ModelConfig& config) {
  check_sizes(config);
  const UnitShape shape = unit_shape(config);
  constexpr float kStd = 0.02F;
  const float residual_std = residual_std_of(config, kStd);
  const AttentionSpec attention{.heads = config.heads, .std = kStd, .residual_std = residual_std};
  const MlpSpec mlp{.hidden = 4 * config.width, .std = kStd, .residual_std = residual_std};
  const Task& task = find_task(config.task);

  ModelPlan plan(config);
  plan.add("embedding", embedding(shape, {.vocabulary = config.vocab, .std = kStd}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::before_branch, {}, attention_branch(shape, attention)));
    plan.add("mlp", half_block(shape, NormPlace::before_branch, {}, mlp_branch(shape, mlp)));
    plan.end_layer();
  }
  plan.add("head", task.head({.shape = shape,
                              .vocabulary = config.vocab,
                              .classes = config.classes,
                              .causal = true,
                              .norm = NormSpec(),
                              .std = kStd}));
  return std::move(plan).build();
}

}  // namespace

Family gpt() {
  return {.make = make_gpt};
}

}  // namespace concertina::families
