// The GPTNeoX... classes of transformers, for layers with parallel branches, as in all published
// models.
#include <fmt/format.h>

#include "models/published/neox_like.h"

namespace concertina::published {
namespace {

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  std::vector<TensorMapping> all;
  add_token_table(all, "gpt_neox.embed_in.weight");
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string ours = layer_unit(layer);
    const std::string theirs = fmt::format("gpt_neox.layers.{}.", layer);
    add_norm(all, ours + "ln", theirs + "input_layernorm", true);
    add_norm(all, ours + "mlp_ln", theirs + "post_attention_layernorm", true);
    add_dense(all, ours + "qkv", {theirs + "attention.query_key_value"}, true, true);
    for (TensorMapping* one = &all.back(); one != &all.back() - 2; --one)
      one->interleaved_heads = config.heads;
    add_dense(all, ours + "proj", {theirs + "attention.dense"}, true, true);
    add_dense(all, ours + "up", {theirs + "mlp.dense_h_to_4h"}, true, true);
    add_dense(all, ours + "down", {theirs + "mlp.dense_4h_to_h"}, true, true);
  }
  add_neox_head(all, config, "gpt_neox.final_layer_norm", "embed_out", false, "classifier");
  return all;
}

}  // namespace

HuggingFace gpt_neox() {
  using Use = KeyMapping::Use;
  using Written = KeyMapping::Written;
  HuggingFace table = neox_like("GPTNeoX", "gpt_neox.", "\"gelu\"");
  table.keys.insert(
      table.keys.end(),
      {{.theirs = "rope_theta", .ours = "model.neox.rope_theta", .written = Written::never},
       {"rotary_emb_base", "model.neox.rope_theta", "10000.0"},
       {.theirs = "partial_rotary_factor",
        .ours = "model.neox.rope_share",
        .written = Written::never},
       {"rotary_pct", "model.neox.rope_share", "0.25"},
       {"attention_bias", "model.neox.attention_bias", "true"},
       {"tie_word_embeddings", "model.neox.tied", "false"},
       {"hidden_dropout", "model.dropout", "0.0", Use::advice},
       {"hidden_dropout_prob", "model.dropout", "", Use::advice, Written::never},
       {"attention_probs_dropout_prob", "model.attention_dropout", "", Use::advice,
        Written::never}});
  table.fixed = {{"model.neox.shared_norm", "false"}, {"model.neox.head_bias", "false"}};
  table.rules.push_back({"use_parallel_residual", "true"});
  table.rules.push_back({"is_decoder", "false", "true"});
  table.left_out.insert(table.left_out.end(), {".attention.bias", ".attention.masked_bias"});
  table.copies = {{"embed_out.weight", "gpt_neox.embed_in.weight"}};
  table.head_dropouts = {{"classifier_dropout", "0.1"}};
  table.tensors = tensors_of;
  return table;
}

}  // namespace concertina::published
