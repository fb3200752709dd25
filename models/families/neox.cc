// GPT-NeoX (Black et al. 2022; Pythia, Biderman et al. 2023) and, with other options, Phi (Li et
// al. 2023): the attention and MLP of a layer read the same input; rotary positions on part of each
// head; layer norms; biases. Units: 0 embedding; 1 + l layer l; L + 1 head.
#include <algorithm>

#include "core/error.h"
#include "models/families/half_blocks.h"

namespace concertina::families {
namespace {

/// Returns the number of rotated columns per head: whole pairs, at least one.
std::int64_t rotary_columns(const ModelConfig& config) {
  const std::int64_t head = config.width / config.heads;
  if (head < 2)
    throw_input("rotary positions need at least two columns per head, got one", "model.heads",
                "fewer heads");
  const double share = option<double>(config.options, "rope_share");
  const auto pairs = static_cast<std::int64_t>(static_cast<double>(head) * share / 2);
  return 2 * std::max<std::int64_t>(pairs, 1);
}

std::unique_ptr<Model> make_neox(const ModelConfig& config) {
  check_sizes(config);
  const UnitShape shape = unit_shape(config);
  const auto init = static_cast<float>(config.init_std);
  const float residual_std = residual_std_of(config, init);
  const NormSpec norm = norm_of(config);
  const bool biases = option<bool>(config.options, "attention_bias");
  const AttentionSpec attention{.heads = config.heads,
                                .qkv_bias = biases,
                                .proj_bias = biases,
                                .rotary = {.theta = option<double>(config.options, "rope_theta"),
                                           .columns = rotary_columns(config)},
                                .std = init,
                                .residual_std = residual_std};
  const MlpSpec mlp = mlp_of(config, residual_std);
  Trunk trunk = trunk_of(config);
  trunk.tied = option<bool>(config.options, "tied");
  trunk.logits_bias = option<bool>(config.options, "head_bias");
  trunk.causal = true;
  trunk.norm = norm;

  ModelPlan plan(config);
  plan.add(
      "embedding",
      embedding(shape,
                {.vocabulary = config.vocab, .tied = trunk.tied, .positions = false, .std = init}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("layer", parallel_block(shape, norm, option<bool>(config.options, "shared_norm"),
                                     attention_branch(shape, attention), mlp_branch(shape, mlp)));
    plan.end_layer();
  }
  plan.add("head", find_task(config.task).head(trunk));

  return std::move(plan).build();
}

}  // namespace

Family neox() {
  return {.make = make_neox,
          .options = {hidden_option(),
                      norm_eps_option(1e-5),
                      activation_option("gelu"),
                      rope_theta_option(),
                      {"rope_share", 0.25,
                       "fraction of each head's columns to rotate, in whole pairs", 0.001, 1},
                      {"shared_norm", false, "attention and MLP of a layer share one norm (Phi)"},
                      {"attention_bias", true, "whether the attention projections have biases"},
                      tied_option(),
                      {"head_bias", false, "whether the output projection has a bias (Phi)"}}};
}

}  // namespace concertina::families
