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

constexpr std::string_view kTanh = "tanh";

std::vector<std::string_view> pooler_names() {
  std::vector<std::string_view> names = activation_names();
  names.insert(names.begin(), kTanh);
  return names;
}

/// None: tanh.
std::optional<Epilogue::Kind> pooler_of(const std::string& name) {
  if (name == kTanh) return std::nullopt;
  return activation_of(name);
}

std::unique_ptr<Model> make_bert(const ModelConfig& config) {
  check_sizes(config);
  const UnitShape shape = unit_shape(config);
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  const auto init = static_cast<float>(config.init_std);
  const NormSpec norm{.eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
  const AttentionSpec attention{
      .heads = config.heads, .causal = false, .padded = true, .std = init, .residual_std = init};
  const auto activation = activation_of(option<std::string>(config.options, "activation"));
  const MlpSpec mlp{.hidden = hidden > 0 ? hidden : 4 * config.width,
                    .activation = activation,
                    .std = init,
                    .residual_std = init};
  const Task& task = find_task(config.task);
  const Trunk trunk{.shape = shape,
                    .vocabulary = config.vocab,
                    .classes = config.classes,
                    .activation = activation,
                    .pools = true,
                    .pooler = pooler_of(option<std::string>(config.options, "pooler")),
                    .norm_eps = norm.eps,
                    .std = init,
                    .targets = config.targets};

  ModelPlan plan(config);
  plan.add("embedding", embedding(shape, {.vocabulary = config.vocab,
                                          .counts_positions = true,
                                          .types = option<std::int64_t>(config.options, "types"),
                                          .norm = norm,
                                          .std = init}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::after_skip, norm, attention_branch(shape, attention)));
    plan.add("mlp", on_rows(layer + 1 < config.layers ? RowsRead{} : task.reads(trunk), shape,
                            [&](const UnitShape& rows) {
                              return half_block(rows, NormPlace::after_skip, norm,
                                                mlp_branch(rows, mlp));
                            }));
    plan.end_layer();
  }
  plan.add("head", task.head(trunk));

  return std::move(plan).build();
}

}  // namespace

Family bert() {
  return {.make = make_bert,
          .usual_task = "masked-lm",
          .options = {
              {"hidden", std::int64_t{0},
               "columns of the MLP between its maps; 0: 4 times the width", 0, 1 << 24},
              {"norm_eps", 1e-12, "added to the variance of the layer norms", 0, 1},
              {"types", std::int64_t{2}, "token types, such as first and second text; 0: none", 0,
               1 << 20},
              choice("activation", "gelu", "of the MLP", activation_names()),
              choice("pooler", kTanh, "of classification: the activation of the first row's map",
                     pooler_names())}};
}

}  // namespace concertina::families
