// The DistilBert... classes of transformers (Sanh et al. 2019): BERT without token types.
#include "models/published/bert_like.h"

namespace concertina::published {
namespace {

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  const std::string embeddings = "distilbert.embeddings.";
  std::vector<TensorMapping> all{{"wte", {embeddings + "word_embeddings.weight"}},
                                 {.ours = "000.embedding/wpe",
                                  .theirs = {embeddings + "position_embeddings.weight"},
                                  .first_rows = true}};
  add_norm(all, "000.embedding/ln", embeddings + "LayerNorm", true);
  add_layers(all, config.layers, "distilbert.transformer.layer.",
             {"sa_layer_norm",
              {"attention.q_lin", "attention.k_lin", "attention.v_lin"},
              "attention.out_lin",
              "output_layer_norm",
              "ffn.lin1",
              "ffn.lin2"});
  add_encoder_heads(all, config.layers,
                    {"pre_classifier", "classifier", "vocab_transform", "vocab_layer_norm",
                     "vocab_projector.bias"});
  return all;
}

}  // namespace

HuggingFace distilbert() {
  using Use = KeyMapping::Use;
  return {
      .family = "bert",
      .body = "distilbert.",
      .architectures = encoders("DistilBert"),
      .keys = {{"n_layers", "model.layers"},
               {"dim", "model.width"},
               {"n_heads", "model.heads"},
               {"max_position_embeddings", "model.context", "512", Use::at_most},
               {"vocab_size", "model.vocab"},
               {.theirs = "hidden_dim", .ours = "model.bert.hidden", .zero = four_widths},
               activation_key("activation", "model.bert.activation", "\"gelu\""),
               {"dropout", "model.dropout", "0.1", Use::advice},
               {"attention_dropout", "model.attention_dropout", "0.1", Use::advice},
               {"num_labels", "model.classes"}},
      .fixed = {{"model.bert.types", "0"},
                {"model.bert.norm_eps", "1e-12"},
                {"model.bert.pooler", "relu"}},
      .rules = {{"tie_weights_", "true"}, {"tie_word_embeddings", "true"}},
      .unused = {"qa_dropout", "sinusoidal_pos_embds"},
      .left_out = {"embeddings.position_ids"},
      .renamed = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
      .copies = {{"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"}},
      .head_dropouts = {{"seq_classif_dropout", "0.2"}},
      .tensors = tensors_of};
}

}  // namespace concertina::published
