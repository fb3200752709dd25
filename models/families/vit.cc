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
                                   .std = 0.02F};
  config.context = patches.patches() + 1;
  check_sizes(config);
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  const UnitShape shape = unit_shape(config);
  const NormSpec norm{.eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
  const AttentionSpec attention{
      .heads = config.heads, .causal = false, .std = patches.std, .residual_std = patches.std};
  const MlpSpec mlp{.hidden = hidden > 0 ? hidden : 4 * config.width,
                    .gelu = Epilogue::Kind::gelu_erf,
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

std::vector<StoredElsewhere> stored_vit(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  const auto image = option<std::int64_t>(config.options, "image");
  const auto patch = option<std::int64_t>(config.options, "patch");
  const std::int64_t width = config.width, rows = image / patch * (image / patch) + 1;
  const std::string patches = "vit.embeddings.patch_embeddings.projection.";
  std::vector<StoredElsewhere> all{
      {.ours = "000.embedding/cls", .theirs = {"vit.embeddings.cls_token"}, .shape = {1, 1, width}},
      {.ours = "000.embedding/wpe",
       .theirs = {"vit.embeddings.position_embeddings"},
       .shape = {1, rows, width}},
      {.ours = "000.embedding/patch.weight",
       .theirs = {patches + "weight"},
       .transposed = true,
       .shape = {width, option<std::int64_t>(config.options, "channels"), patch, patch}},
      {"000.embedding/patch.bias", {patches + "bias"}}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string attention = attention_unit(layer) + "/", mlp = mlp_unit(layer) + "/";
    const std::string theirs = fmt::format("vit.encoder.layer.{}.", layer);
    const std::string heads = theirs + "attention.attention.";
    add_norm(all, attention + "ln", theirs + "layernorm_before", true);
    add_dense(all, attention + "qkv", {heads + "query", heads + "key", heads + "value"}, true,
              true);
    add_dense(all, attention + "proj", {theirs + "attention.output.dense"}, true, true);
    add_norm(all, mlp + "ln", theirs + "layernorm_after", true);
    add_dense(all, mlp + "up", {theirs + "intermediate.dense"}, true, true);
    add_dense(all, mlp + "down", {theirs + "output.dense"}, true, true);
  }
  add_norm(all, head_unit(layers) + "/ln", "vit.layernorm", true);
  add_dense(all, head_unit(layers) + "/classes", {"classifier"}, true, true, true);
  return all;
}

/// transformers' ViTForImageClassification.
const HuggingFace& vit_elsewhere() {
  static const HuggingFace table{
      .model_type = "vit",
      .body = "vit.",
      .architectures = {{"classification", "ViTForImageClassification"}, {"", "ViTModel"}},
      .keys = {{"num_hidden_layers", "model.layers"},
               {"hidden_size", "model.width"},
               {"num_attention_heads", "model.heads"},
               {"intermediate_size", "model.vit.hidden"},
               {"layer_norm_eps", "model.vit.norm_eps", "1e-12"},
               {"image_size", "model.vit.image"},
               {"num_channels", "model.vit.channels"},
               {"patch_size", "model.vit.patch"},
               {"num_labels", "model.classes"}},
      .rules = {{"hidden_act", "\"gelu\""}, {"qkv_bias", "true"}},
      .unused = {"attention_probs_dropout_prob", "hidden_dropout_prob", "encoder_stride",
                 "pooler_act", "pooler_output_size"},
      .left_out = {"pooler.dense.weight", "pooler.dense.bias"},
      .tensors = stored_vit};
  return table;
}

}  // namespace

Family vit() {
  return {
      .make = make_vit,
      .hugging_face = vit_elsewhere,
      .usual_task = "classification",
      .options = {{"hidden", std::int64_t{0},
                   "columns of the MLP between its maps; 0: 4 times the width", 0, 1 << 24},
                  {"norm_eps", 1e-12, "added to the variance of the layer norms", 0, 1},
                  {"image", std::int64_t{28}, "height and width of an image, pixels", 1, 1 << 16},
                  {"channels", std::int64_t{1}, "colours of a pixel", 1, 64},
                  {"patch", std::int64_t{7},
                   "height and width of a patch, which divide those of an image", 1, 1 << 16}}};
}

}  // namespace concertina::families
