// The OPT... classes of transformers (Zhang et al. 2022): GPT with separate q, k and v, weights
// stored as [out, in], and two rows before the first position.
#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {
namespace {

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  const std::string body = "model.decoder.";
  std::vector<TensorMapping> all{{"wte", {body + "embed_tokens.weight"}},
                                 {.ours = "000.embedding/wpe",
                                  .theirs = {body + "embed_positions.weight"},
                                  .first_rows = true,
                                  .skipped_rows = 2}};
  add_layers(all, config.layers, body + "layers.",
             {"self_attn_layer_norm",
              {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
              "self_attn.out_proj",
              "final_layer_norm",
              "fc1",
              "fc2"});
  add_norm(all, head_unit(layers) + "/ln", body + "final_layer_norm", true);
  add_dense(all, head_unit(layers) + "/classes", {"score"}, true, false, true);
  return all;
}

}  // namespace

HuggingFace opt() {
  using Use = KeyMapping::Use;
  return {.family = "gpt",
          .body = "model.",
          .architectures = decoders("OPT", false),
          .keys = size_keys(
              "2048", {{.theirs = "word_embed_proj_dim", .ours = "model.width", .null = "0"},
                       {.theirs = "ffn_dim", .ours = "model.gpt.hidden", .zero = four_widths},
                       activation_key("activation_function", "model.gpt.activation", "\"relu\""),
                       {"dropout", "model.dropout", "0.1", Use::advice},
                       {"attention_dropout", "model.attention_dropout", "0.0", Use::advice}}),
          .fixed = {{"model.gpt.norm_eps", "1e-05"}},
          .rules = {{"do_layer_norm_before", "true"},
                    {"_remove_final_layer_norm", "false"},
                    {"enable_bias", "true"},
                    {"layer_norm_elementwise_affine", "true"},
                    {"tie_word_embeddings", "true"},
                    {"scale_embeddings", "false"}},
          .unused = {"layerdrop", "activation_dropout", "init_std"},
          .copies = {{"lm_head.weight", "model.decoder.embed_tokens.weight"}},
          .tensors = tensors_of};
}

}  // namespace concertina::published
