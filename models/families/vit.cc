// ViT (Dosovitskiy et al. 2021): a pre-norm encoder over the patches of an image and a class token.
#include <fmt/format.h>

#include "core/error.h"
#include "models/families/half_blocks.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_vit(const ModelConfig& given) {
  ModelConfig config = given;
  const auto image = option<std::int64_t>(config.options, "image");
  const auto patch = option<std::int64_t>(config.options, "patch");
  if (image % patch != 0)
    throw_input(
        fmt::format("images of {0} x {0} pixels cannot be divided into patches of {1} x {1}", image,
                    patch),
        "model.vit.patch", "a divisor of model.vit.image");
  const PatchEmbeddingSpec patches{.channels = option<std::int64_t>(config.options, "channels"),
                                   .size = image,
                                   .patch = patch,
                                   .std = static_cast<float>(config.init_std)};
  config.context = patches.patches() + 1;
  if (config.context > 1 << 24)
    throw_input(fmt::format("an image has {} patches", patches.patches()), "model.vit.patch",
                "larger patches, or a smaller model.vit.image");
  check_sizes(config);
  Trunk trunk = trunk_of(config);
  trunk.norm = norm_of(config);
  trunk.norm_eps = trunk.norm->eps;
  return build(config, {.embedding = patch_embedding(trunk.shape, patches),
                        .norm = *trunk.norm,
                        .attention = {.heads = config.heads,
                                      .causal = false,
                                      .qkv_bias = option<bool>(config.options, "qkv_bias"),
                                      .std = patches.std,
                                      .residual_std = patches.std},
                        .mlp = mlp_of(config, patches.std),
                        .trunk = trunk});
}

}  // namespace

Family vit() {
  return {.make = make_vit,
          .default_task = "classification",
          .options = {
              hidden_option(),
              norm_eps_option(1e-12),
              {"image", std::int64_t{28}, "height and width of an image in pixels", 1, 1 << 16},
              {"channels", std::int64_t{1}, "number of color channels", 1, 64},
              {"patch", std::int64_t{7},
               "height and width of a patch in pixels, a divisor of the image size", 1, 1 << 16},
              {"qkv_bias", true, "whether the projections to queries, keys and values have biases"},
              activation_option("gelu")}};
}

}  // namespace concertina::families
