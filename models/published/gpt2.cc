// The GPT2... classes of transformers. Weights are stored as [in, out], except for the classifier.
#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {
namespace {

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  std::vector<TensorMapping> all{
      {"wte", {"transformer.wte.weight"}},
      {.ours = "000.embedding/wpe", .theirs = {"transformer.wpe.weight"}, .first_rows = true}};
  add_layers(all, config.layers, "transformer.h.",
             {"ln_1", {"attn.c_attn"}, "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj", false});
  add_norm(all, head_unit(layers) + "/ln", "transformer.ln_f", true);
  add_dense(all, head_unit(layers) + "/classes", {"score"}, true, false, true);
  add_dense(all, head_unit(layers) + "/tags", {"classifier"}, true, true, true);
  return all;
}

}  // namespace

HuggingFace gpt2() {
  using Use = KeyMapping::Use;
  using Written = KeyMapping::Written;
  return {
      .family = "gpt",
      .body = "transformer.",
      .architectures = {{"causal-lm", "GPT2LMHeadModel"},
                        {"classification", "GPT2ForSequenceClassification"},
                        {"token-classification", "GPT2ForTokenClassification"},
                        {"", "GPT2Model"}},
      .keys = {{"n_layer", "model.layers"},
               {"n_embd", "model.width"},
               {"n_head", "model.heads"},
               {"n_positions", "model.context", "1024", Use::at_most},
               {"vocab_size", "model.vocab"},
               {.theirs = "n_inner",
                .ours = "model.gpt.hidden",
                .default_value = "0",
                .written = Written::if_set},
               activation_key("activation_function", "model.gpt.activation", "\"gelu_new\""),
               {"layer_norm_epsilon", "model.gpt.norm_eps", "1e-05"},
               {"resid_pdrop", "model.dropout", "0.1", Use::advice},
               {"embd_pdrop", "model.dropout", "0.1", Use::advice},
               {"attn_pdrop", "model.attention_dropout", "0.1", Use::advice},
               {"num_labels", "model.classes"}},
      .rules = {{"scale_attn_weights", "true"},
                {"scale_attn_by_inverse_layer_idx", "false"},
                {"reorder_and_upcast_attn", "false", "true"},
                {"add_cross_attention", "false"},
                {"tie_word_embeddings", "true"}},
      .unused = {"n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj", "n_special", "predict_special_tokens"},
      .left_out = {".attn.bias", ".attn.masked_bias"},
      .copies = {{"lm_head.weight", "transformer.wte.weight"}},
      .tensors = tensors_of};
}

}  // namespace concertina::published
