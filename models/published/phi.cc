// transformers' Phi... (Phi 1, 1.5 and 2).
#include <fmt/format.h>

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {
namespace {

std::vector<StoredElsewhere> tensors_of(const ModelConfig& config) {
  std::vector<StoredElsewhere> all{
      {.ours = "wte", .theirs = {"model.embed_tokens.weight"}, .optional = true},
      {.ours = "000.embedding/wte", .theirs = {"model.embed_tokens.weight"}, .optional = true}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string ours = fmt::format("{:03}.layer/", 1 + layer);
    const std::string theirs = fmt::format("model.layers.{}.", layer);
    const std::string heads = theirs + "self_attn.";
    add_norm(all, ours + "ln", theirs + "input_layernorm", true);
    add_dense(all, ours + "qkv", {heads + "q_proj", heads + "k_proj", heads + "v_proj"}, true,
              true);
    add_dense(all, ours + "proj", {heads + "dense"}, true, true);
    add_dense(all, ours + "up", {theirs + "mlp.fc1"}, true, true);
    add_dense(all, ours + "down", {theirs + "mlp.fc2"}, true, true);
  }
  const std::string head = fmt::format("{:03}.head/", 1 + config.layers);
  add_norm(all, head + "ln", "model.final_layernorm", true);
  add_dense(all, head + "head", {"lm_head"}, true, true, true);
  add_dense(all, head + "classes", {"score"}, true, false, true);
  return all;
}

std::string heads_of(const ModelConfig& config) {
  return std::to_string(config.heads);
}

}  // namespace

HuggingFace phi() {
  using Use = KeyElsewhere::Use;
  return {
      .family = "neox",
      .body = "model.",
      .architectures = {{"causal-lm", "PhiForCausalLM"},
                        {"classification", "PhiForSequenceClassification"},
                        {"", "PhiModel"}},
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
                .usual = "\"gelu_new\"",
                .words = activation_words()},
               {"layer_norm_eps", "model.neox.norm_eps", "1e-05"},
               {"rope_parameters.rope_theta", "model.neox.rope_theta"},
               {"rope_theta", "model.neox.rope_theta", "10000.0"},
               {.theirs = "rope_parameters.partial_rotary_factor", .ours = "model.neox.rope_share"},
               {"partial_rotary_factor", "model.neox.rope_share", "0.5"},
               {"resid_pdrop", "model.dropout", "0.0", Use::advice},
               {"attention_dropout", "model.attention_dropout", "0.0", Use::advice},
               {"num_labels", "model.classes"}},
      .fixed = {{"model.neox.shared_norm", "true"},
                {"model.neox.head_bias", "true"},
                {"model.neox.attention_bias", "true"},
                {"model.neox.tied", "false"}},
      .rules = {{"qk_layernorm", "false"},
                {"tie_word_embeddings", "false"},
                {"rope_parameters.rope_type", "\"default\""},
                {"rope_scaling", "null"}},
      .unused = {"embd_pdrop"},
      .left_out = {".rotary_emb.inv_freq"},
      .derived = {{"num_key_value_heads", heads_of}},
      .tensors = tensors_of};
}

}  // namespace concertina::published
