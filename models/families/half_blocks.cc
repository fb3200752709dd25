#include "models/families/half_blocks.h"

namespace concertina::families {

Option hidden_option(std::string_view help) {
  return {"hidden", std::int64_t{0}, help, 0, 1 << 24};
}
Option norm_eps_option(double default_value, std::string_view help) {
  return {"norm_eps", default_value, help, 0, 1};
}
Option activation_option(std::string_view default_value) {
  return choice("activation", default_value, "activation of the MLP", activation_names());
}
Option tied_option() {
  return {"tied", false,
          "compute logits with the token table instead of a separate output projection"};
}
Option rope_theta_option() {
  return {"rope_theta", 1e4, "base of the rotary position frequencies (theta)", 1, 1e12};
}

NormSpec norm_of(const ModelConfig& config, NormSpec::Kind kind) {
  return {.kind = kind, .eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
}

MlpSpec mlp_of(const ModelConfig& config, float residual_std, bool gated) {
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  MlpSpec mlp{.hidden = hidden,
              .std = static_cast<float>(config.init_std),
              .residual_std = residual_std,
              .gated = gated};
  if (hidden == 0) mlp.hidden = gated ? gated_hidden(config.width) : 4 * config.width;
  if (!gated) mlp.activation = activation_of(option<std::string>(config.options, "activation"));
  return mlp;
}

Trunk trunk_of(const ModelConfig& config) {
  return {.shape = unit_shape(config),
          .vocabulary = config.vocab,
          .classes = config.classes,
          .std = static_cast<float>(config.init_std)};
}

std::unique_ptr<Model> build(const ModelConfig& config, HalfBlocks parts) {
  const UnitShape shape = unit_shape(config);
  const Task& task = find_task(config.task);
  ModelPlan plan(config);
  plan.add("embedding", std::move(parts.embedding));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, parts.place, parts.norm, attention_branch(shape, parts.attention)));
    plan.add("mlp", on_rows(layer + 1 < config.layers ? RowsRead{} : task.reads(parts.trunk), shape,
                            [&](const UnitShape& rows) {
                              return half_block(rows, parts.place, parts.norm,
                                                mlp_branch(rows, parts.mlp));
                            }));
    plan.end_layer();
  }
  plan.add("head", task.head(parts.trunk));
  return std::move(plan).build();
}

}  // namespace concertina::families
