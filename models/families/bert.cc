// BERT (Devlin et al. 2019): an encoder whose norms come after the skip; tokens, positions and
// token types; padding that no query sees. Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of
// layer l; 2L + 1 head.
#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_bert(const ModelConfig& config) {
  check_sizes(config);
  const UnitShape shape = unit_shape(config);
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  constexpr float kStd = 0.02F;
  const NormSpec norm{.eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
  const AttentionSpec attention{
      .heads = config.heads, .causal = false, .padded = true, .std = kStd, .residual_std = kStd};
  const MlpSpec mlp{.hidden = hidden > 0 ? hidden : 4 * config.width,
                    .gelu = Epilogue::Kind::gelu_erf,
                    .std = kStd,
                    .residual_std = kStd};
  const Task& task = find_task(config.task);

  ModelPlan plan(config);
  plan.add("embedding", embedding(shape, {.vocabulary = config.vocab,
                                          .types = option<std::int64_t>(config.options, "types"),
                                          .norm = norm,
                                          .std = kStd}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::after_skip, norm, attention_branch(shape, attention)));
    plan.add("mlp", half_block(shape, NormPlace::after_skip, norm, mlp_branch(shape, mlp)));
    plan.end_layer();
  }
  plan.add("head", task.head({.shape = shape,
                              .vocabulary = config.vocab,
                              .classes = config.classes,
                              .pooler = true,
                              .norm_eps = norm.eps,
                              .std = kStd}));
  return std::move(plan).build();
}

}  // namespace

Family bert() {
  return {.make = make_bert,
          .usual_task = "masked-lm",
          .options = {{"hidden", std::int64_t{0},
                       "columns of the MLP between its maps; 0: 4 times the width", 0, 1 << 24},
                      {"norm_eps", 1e-12, "added to the variance of the layer norms", 0, 1},
                      {"types", std::int64_t{2}, "token types, such as first and second text", 1,
                       1 << 20}}};
}

}  // namespace concertina::families
