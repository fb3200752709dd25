// transformers' GPTNeoX... with layers whose branches are added together, as all that are
// published.
#include <fmt/format.h>

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {
namespace {

std::vector<StoredElsewhere> tensors_of(const ModelConfig& config) {
  std::vector<StoredElsewhere> all{
      {.ours = "wte", .theirs = {"gpt_neox.embed_in.weight"}, .optional = true},
      {.ours = "000.embedding/wte", .theirs = {"gpt_neox.embed_in.weight"}, .optional = true}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string ours = fmt::format("{:03}.layer/", 1 + layer);
    const std::string theirs = fmt::format("gpt_neox.layers.{}.", layer);
    add_norm(all, ours + "ln", theirs + "input_layernorm", true);
    add_norm(all, ours + "mlp_ln", theirs + "post_attention_layernorm", true);
    add_dense(all, ours + "qkv", {theirs + "attention.query_key_value"}, true, true);
    for (StoredElsewhere* one = &all.back(); one != &all.back() - 2; --one)
      one->interleaved_heads = config.heads;
    add_dense(all, ours + "proj", {theirs + "attention.dense"}, true, true);
    add_dense(all, ours + "up", {theirs + "mlp.dense_h_to_4h"}, true, true);
    add_dense(all, ours + "down", {theirs + "mlp.dense_4h_to_h"}, true, true);
  }
  const std::string head = fmt::format("{:03}.head/", 1 + config.layers);
  add_norm(all, head + "ln", "gpt_neox.final_layer_norm", true);
  add_dense(all, head + "head", {"embed_out"}, true, false, true);
  add_dense(all, head + "classes", {"score"}, true, false, true);
  return all;
}

}  // namespace

HuggingFace gpt_neox() {
  using Use = KeyElsewhere::Use;
  using Written = KeyElsewhere::Written;
  return {
      .family = "neox",
      .body = "gpt_neox.",
      .architectures = {{"causal-lm", "GPTNeoXForCausalLM"},
                        {"classification", "GPTNeoXForSequenceClassification"},
                        {"", "GPTNeoXModel"}},
      .keys = {{"num_hidden_layers", "model.layers"},
               {"hidden_size", "model.width"},
               {"num_attention_heads", "model.heads"},
               {"max_position_embeddings", "model.context", "2048", Use::at_most},
               {"vocab_size", "model.vocab"},
               {.theirs = "intermediate_size",
                .ours = "model.neox.hidden",
                .zero = [](const ModelConfig& of) { return 4 * of.width; }},
               {.theirs = "hidden_act",
                .ours = "model.neox.activation",
                .usual = "\"gelu\"",
                .words = activation_words()},
               {"layer_norm_eps", "model.neox.norm_eps", "1e-05"},
               {"rope_parameters.rope_theta", "model.neox.rope_theta"},
               {.theirs = "rope_theta", .ours = "model.neox.rope_theta", .written = Written::never},
               {"rotary_emb_base", "model.neox.rope_theta", "10000.0"},
               {.theirs = "rope_parameters.partial_rotary_factor", .ours = "model.neox.rope_share"},
               {.theirs = "partial_rotary_factor",
                .ours = "model.neox.rope_share",
                .written = Written::never},
               {"rotary_pct", "model.neox.rope_share", "0.25"},
               {"attention_bias", "model.neox.attention_bias", "true"},
               {"tie_word_embeddings", "model.neox.tied", "false"},
               {"hidden_dropout", "model.dropout", "0.0", Use::advice},
               {"hidden_dropout_prob", "model.dropout", "", Use::advice, Written::never},
               {"attention_dropout", "model.attention_dropout", "0.0", Use::advice},
               {"attention_probs_dropout_prob", "model.attention_dropout", "", Use::advice,
                Written::never},
               {"num_labels", "model.classes"}},
      .fixed = {{"model.neox.shared_norm", "false"}, {"model.neox.head_bias", "false"}},
      .rules = {{"use_parallel_residual", "true"},
                {"rope_parameters.rope_type", "\"default\""},
                {"rope_scaling", "null"},
                {"is_decoder", "false", "true"}},
      .left_out = {".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"},
      .copies = {{"embed_out.weight", "gpt_neox.embed_in.weight"}},
      .tensors = tensors_of};
}

}  // namespace concertina::published
