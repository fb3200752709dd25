// The ViT... classes of transformers.
#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {
namespace {

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  const auto image = option<std::int64_t>(config.options, "image");
  const auto patch = option<std::int64_t>(config.options, "patch");
  const std::int64_t width = config.width, rows = image / patch * (image / patch) + 1;
  const std::string patches = "vit.embeddings.patch_embeddings.projection.";
  std::vector<TensorMapping> all{
      {.ours = "000.embedding/cls", .theirs = {"vit.embeddings.cls_token"}, .shape = {1, 1, width}},
      {.ours = "000.embedding/wpe",
       .theirs = {"vit.embeddings.position_embeddings"},
       .shape = {1, rows, width}},
      {.ours = "000.embedding/patch.weight",
       .theirs = {patches + "weight"},
       .transposed = true,
       .shape = {width, option<std::int64_t>(config.options, "channels"), patch, patch}},
      {"000.embedding/patch.bias", {patches + "bias"}}};
  add_layers(all, config.layers, "vit.encoder.layer.",
             {"layernorm_before",
              {"attention.attention.query", "attention.attention.key", "attention.attention.value"},
              "attention.output.dense",
              "layernorm_after",
              "intermediate.dense",
              "output.dense"});
  add_norm(all, head_unit(layers) + "/ln", "vit.layernorm", true);
  add_dense(all, head_unit(layers) + "/classes", {"classifier"}, true, true, true);
  return all;
}

}  // namespace

HuggingFace vit() {
  using Use = KeyMapping::Use;
  return {.family = "vit",
          .body = "vit.",
          .architectures = {{"classification", "ViTForImageClassification"}, {"", "ViTModel"}},
          .keys = {{"num_hidden_layers", "model.layers"},
                   {"hidden_size", "model.width"},
                   {"num_attention_heads", "model.heads"},
                   {.theirs = "intermediate_size", .ours = "model.vit.hidden", .zero = four_widths},
                   {"layer_norm_eps", "model.vit.norm_eps", "1e-12"},
                   {"image_size", "model.vit.image"},
                   {"num_channels", "model.vit.channels"},
                   {"patch_size", "model.vit.patch"},
                   {"qkv_bias", "model.vit.qkv_bias", "true"},
                   activation_key("hidden_act", "model.vit.activation", "\"gelu\""),
                   {"hidden_dropout_prob", "model.dropout", "0.0", Use::advice},
                   {"attention_probs_dropout_prob", "model.attention_dropout", "0.0", Use::advice},
                   {"num_labels", "model.classes"}},
          .unused = {"encoder_stride", "pooler_act", "pooler_output_size"},
          .left_out = {"pooler.dense.weight", "pooler.dense.bias"},
          .tensors = tensors_of};
}

}  // namespace concertina::published
