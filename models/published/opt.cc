// transformers' OPT... (Zhang et al. 2022): a GPT whose maps are apart and stored [out, in], with
// two rows before the first position.
#include <fmt/format.h>

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {
namespace {

std::vector<StoredElsewhere> tensors_of(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  const std::string body = "model.decoder.";
  std::vector<StoredElsewhere> all{{"wte", {body + "embed_tokens.weight"}},
                                   {.ours = "000.embedding/wpe",
                                    .theirs = {body + "embed_positions.weight"},
                                    .first_rows = true,
                                    .skipped_rows = 2}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string attention = attention_unit(layer) + "/", mlp = mlp_unit(layer) + "/";
    const std::string theirs = fmt::format("{}layers.{}.", body, layer);
    const std::string heads = theirs + "self_attn.";
    add_norm(all, attention + "ln", theirs + "self_attn_layer_norm", true);
    add_dense(all, attention + "qkv", {heads + "q_proj", heads + "k_proj", heads + "v_proj"}, true,
              true);
    add_dense(all, attention + "proj", {heads + "out_proj"}, true, true);
    add_norm(all, mlp + "ln", theirs + "final_layer_norm", true);
    add_dense(all, mlp + "up", {theirs + "fc1"}, true, true);
    add_dense(all, mlp + "down", {theirs + "fc2"}, true, true);
  }
  add_norm(all, head_unit(layers) + "/ln", body + "final_layer_norm", true);
  add_dense(all, head_unit(layers) + "/classes", {"score"}, true, false, true);
  return all;
}

std::string width_of(const ModelConfig& config) {
  return std::to_string(config.width);
}

}  // namespace

HuggingFace opt() {
  using Use = KeyElsewhere::Use;
  return {.family = "gpt",
          .body = "model.",
          .architectures = {{"causal-lm", "OPTForCausalLM"},
                            {"classification", "OPTForSequenceClassification"},
                            {"", "OPTModel"}},
          .keys = {{"num_hidden_layers", "model.layers"},
                   {"hidden_size", "model.width"},
                   {"num_attention_heads", "model.heads"},
                   {"max_position_embeddings", "model.context", "2048", Use::at_most},
                   {"vocab_size", "model.vocab"},
                   {.theirs = "ffn_dim",
                    .ours = "model.gpt.hidden",
                    .zero = [](const ModelConfig& of) { return 4 * of.width; }},
                   {.theirs = "activation_function",
                    .ours = "model.gpt.activation",
                    .usual = "\"relu\"",
                    .words = activation_words()},
                   {"dropout", "model.dropout", "0.1", Use::advice},
                   {"attention_dropout", "model.attention_dropout", "0.0", Use::advice},
                   {"num_labels", "model.classes"}},
          .fixed = {{"model.gpt.norm_eps", "1e-05"}},
          .rules = {{"do_layer_norm_before", "true"},
                    {"_remove_final_layer_norm", "false"},
                    {"enable_bias", "true"},
                    {"layer_norm_elementwise_affine", "true"},
                    {"tie_word_embeddings", "true"}},
          .unused = {"layerdrop", "activation_dropout", "init_std", "prefix"},
          .copies = {{"lm_head.weight", "model.decoder.embed_tokens.weight"}},
          .derived = {{"word_embed_proj_dim", width_of}},
          .tensors = tensors_of};
}

}  // namespace concertina::published
