// GPT-2 (Radford et al. 2019; the config sets the sizes): an embedding, an attention and an MLP
// half-block per layer, a final norm, and a head tied to the token embedding.
#include "models/families/half_blocks.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_gpt(const ModelConfig& config) {
  check_sizes(config);
  const auto init = static_cast<float>(config.init_std);
  const float residual_std = residual_std_of(config, init);
  Trunk trunk = trunk_of(config);
  trunk.causal = true;
  trunk.norm = norm_of(config);
  return build(config,
               {.embedding = embedding(trunk.shape, {.vocabulary = config.vocab, .std = init}),
                .norm = *trunk.norm,
                .attention = {.heads = config.heads, .std = init, .residual_std = residual_std},
                .mlp = mlp_of(config, residual_std),
                .trunk = trunk});
}

}  // namespace

Family gpt() {
  return {.make = make_gpt,
          .options = {hidden_option(), norm_eps_option(1e-5), activation_option("gelu_tanh")}};
}

}  // namespace concertina::families
