// BERT (Devlin et al. 2019): a post-norm encoder with token, position and token-type embeddings and
// a padding mask.
#include "models/families/half_blocks.h"

namespace concertina::families {
namespace {

constexpr std::string_view kTanh = "tanh";

std::vector<std::string_view> pooler_names() {
  std::vector<std::string_view> names = activation_names();
  names.insert(names.begin(), kTanh);
  return names;
}

/// Returns the pooler's activation; nullopt stands for tanh.
std::optional<Epilogue::Kind> pooler_of(const std::string& name) {
  if (name == kTanh) return std::nullopt;
  return activation_of(name);
}

std::unique_ptr<Model> make_bert(const ModelConfig& config) {
  check_sizes(config);
  const auto init = static_cast<float>(config.init_std);
  const NormSpec norm = norm_of(config);
  const MlpSpec mlp = mlp_of(config, init);
  Trunk trunk = trunk_of(config);
  trunk.activation = mlp.activation;
  trunk.pools = true;
  trunk.pooler = pooler_of(option<std::string>(config.options, "pooler"));
  trunk.norm_eps = norm.eps;
  trunk.targets = config.targets;
  return build(config, {.embedding = embedding(
                            trunk.shape, {.vocabulary = config.vocab,
                                          .counts_positions = true,
                                          .types = option<std::int64_t>(config.options, "types"),
                                          .norm = norm,
                                          .std = init}),
                        .place = NormPlace::after_skip,
                        .norm = norm,
                        .attention = {.heads = config.heads,
                                      .causal = false,
                                      .padded = true,
                                      .std = init,
                                      .residual_std = init},
                        .mlp = mlp,
                        .trunk = trunk});
}

}  // namespace

Family bert() {
  return {
      .make = make_bert,
      .default_task = "masked-lm",
      .options = {hidden_option(),
                  norm_eps_option(1e-12),
                  {"types", std::int64_t{2},
                   "number of token types, such as first and second text (0: no type embedding)", 0,
                   1 << 20},
                  activation_option("gelu"),
                  choice("pooler", kTanh,
                         "activation of the pooler, which maps the first row (classification only)",
                         pooler_names())}};
}

}  // namespace concertina::families
