// ViT (Dosovitskiy et al. 2021): patches of an image and a class token through an encoder whose
// norms come before their branches. Units: 0 patch embedding; 1 + 2l attention and 2 + 2l MLP of
// layer l; 2L + 1 head.
#include <fmt/format.h>

#include "core/error.h"
#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_vit(const ModelConfig& given) {
  ModelConfig config = given;
  const auto image = option<std::int64_t>(config.options, "image");
  const auto patch = option<std::int64_t>(config.options, "patch");
  if (image % patch != 0)
    throw_input(
        fmt::format("images of {0} x {0} pixels have no whole patches of {1} x {1}", image, patch),
        "model.vit.patch", "a divisor of model.vit.image");
  const PatchEmbeddingSpec patches{.channels = option<std::int64_t>(config.options, "channels"),
                                   .size = image,
                                   .patch = patch,
                                   .std = static_cast<float>(config.init_std)};
  config.context = patches.patches() + 1;
  check_sizes(config);
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  const UnitShape shape = unit_shape(config);
  const NormSpec norm{.eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
  const AttentionSpec attention{.heads = config.heads,
                                .causal = false,
                                .qkv_bias = option<bool>(config.options, "qkv_bias"),
                                .std = patches.std,
                                .residual_std = patches.std};
  const MlpSpec mlp{.hidden = hidden > 0 ? hidden : 4 * config.width,
                    .activation = activation_of(option<std::string>(config.options, "activation")),
                    .std = patches.std,
                    .residual_std = patches.std};
  const Task& task = find_task(config.task);
  const Trunk trunk{.shape = shape,
                    .vocabulary = config.vocab,
                    .classes = config.classes,
                    .norm = norm,
                    .norm_eps = norm.eps,
                    .std = patches.std};

  ModelPlan plan(config);
  plan.add("embedding", patch_embedding(shape, patches));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::before_branch, norm, attention_branch(shape, attention)));
    plan.add("mlp", on_rows(layer + 1 < config.layers ? RowsRead{} : task.reads(trunk), shape,
                            [&](const UnitShape& rows) {
                              return half_block(rows, NormPlace::before_branch, norm,
                                                mlp_branch(rows, mlp));
                            }));
    plan.end_layer();
  }
  plan.add("head", task.head(trunk));

  return std::move(plan).build();
}

}  // namespace

Family vit() {
  return {
      .make = make_vit,
      .usual_task = "classification",
      .options = {{"hidden", std::int64_t{0},
                   "columns of the MLP between its maps; 0: 4 times the width", 0, 1 << 24},
                  {"norm_eps", 1e-12, "added to the variance of the layer norms", 0, 1},
                  {"image", std::int64_t{28}, "height and width of an image, pixels", 1, 1 << 16},
                  {"channels", std::int64_t{1}, "colours of a pixel", 1, 64},
                  {"patch", std::int64_t{7},
                   "height and width of a patch, which divide those of an image", 1, 1 << 16},
                  {"qkv_bias", true, "whether the maps of queries, keys and values have biases"},
                  choice("activation", "gelu", "of the MLP", activation_names())}};
}

}  // namespace concertina::families
