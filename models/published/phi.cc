// The Phi... classes of transformers (Phi 1, 1.5 and 2).
#include <fmt/format.h>

#include "models/published/neox_like.h"

namespace concertina::published {
namespace {

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  std::vector<TensorMapping> all;
  add_token_table(all, "model.embed_tokens.weight");
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string ours = layer_unit(layer);
    const std::string theirs = fmt::format("model.layers.{}.", layer);
    const std::string heads = theirs + "self_attn.";
    add_norm(all, ours + "ln", theirs + "input_layernorm", true);
    add_dense(all, ours + "qkv", {heads + "q_proj", heads + "k_proj", heads + "v_proj"}, true,
              true);
    add_dense(all, ours + "proj", {heads + "dense"}, true, true);
    add_dense(all, ours + "up", {theirs + "mlp.fc1"}, true, true);
    add_dense(all, ours + "down", {theirs + "mlp.fc2"}, true, true);
  }
  add_neox_head(all, config, "model.final_layernorm", "lm_head", true, "score");
  return all;
}

}  // namespace

HuggingFace phi() {
  using Use = KeyMapping::Use;
  HuggingFace table = neox_like("Phi", "model.", "\"gelu_new\"");
  table.keys.insert(table.keys.end(),
                    {{"rope_theta", "model.neox.rope_theta", "10000.0"},
                     {"partial_rotary_factor", "model.neox.rope_share", "0.5"},
                     {.theirs = "num_key_value_heads", .ours = "model.heads", .null = "0"},
                     {"resid_pdrop", "model.dropout", "0.0", Use::advice}});
  table.fixed = {{"model.neox.shared_norm", "true"},
                 {"model.neox.head_bias", "true"},
                 {"model.neox.attention_bias", "true"},
                 {"model.neox.tied", "false"}};
  table.rules.push_back({"qk_layernorm", "false"});
  table.rules.push_back({"tie_word_embeddings", "false"});
  table.unused = {"embd_pdrop"};
  table.tensors = tensors_of;
  return table;
}

}  // namespace concertina::published
