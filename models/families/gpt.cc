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
  const auto init = static_cast<float>(config.init_std);
  const float residual_std = residual_std_of(config, init);
  const AttentionSpec attention{.heads = config.heads, .std = init, .residual_std = residual_std};
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  const NormSpec norm{.eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
  const MlpSpec mlp{.hidden = hidden > 0 ? hidden : 4 * config.width,
                    .activation = activation_of(option<std::string>(config.options, "activation")),
                    .std = init,
                    .residual_std = residual_std};
  const Task& task = find_task(config.task);
  const Trunk trunk{.shape = shape,
                    .vocabulary = config.vocab,
                    .classes = config.classes,
                    .causal = true,
                    .norm = norm,
                    .std = init};

  ModelPlan plan(config);
  plan.add("embedding", embedding(shape, {.vocabulary = config.vocab, .std = init}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::before_branch, norm, attention_branch(shape, attention)));
    plan.add("mlp", on_rows(layer + 1 < config.layers ? RowsRead{} : task.reads(trunk), shape,
                            [&](const UnitShape& rows) {
                              return half_block(rows, NormPlace::before_branch, {},
                                                mlp_branch(rows, mlp));
                            }));
    plan.end_layer();
  }
  plan.add("head", task.head(trunk));

  return std::move(plan).build();
}

}  // namespace

Family gpt() {
  return {.make = make_gpt,
          .options = {{"hidden", std::int64_t{0},
                       "columns of the MLP between its maps; 0: 4 times the width", 0, 1 << 24},
                      {"norm_eps", 1e-5, "added to the variance of the layer norms", 0, 1},
                      choice("activation", "gelu_tanh", "of the MLP", activation_names())}};
}

}  // namespace concertina::families
