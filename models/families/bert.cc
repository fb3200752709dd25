// BERT (Devlin et al. 2019): an encoder whose norms come after the skip; tokens, positions and
// token types; padding that no query sees. Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of
// layer l; 2L + 1 head.
#include <fmt/format.h>

#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_bert(const ModelConfig& config) {
  check_sizes(config);
  const UnitShape shape = unit_shape(config);
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  constexpr float kStd = 0.02F;
  const NormSpec norm{.eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
  const AttentionSpec attention{
      .heads = config.heads, .causal = false, .padded = true, .std = kStd, .residual_std = kStd};
  const MlpSpec mlp{.hidden = hidden > 0 ? hidden : 4 * config.width,
                    .gelu = Epilogue::Kind::gelu_erf,
                    .std = kStd,
                    .residual_std = kStd};
  const Task& task = find_task(config.task);
  const Trunk trunk{.shape = shape,
                    .vocabulary = config.vocab,
                    .classes = config.classes,
                    .pooler = true,
                    .norm_eps = norm.eps,
                    .std = kStd,
                    .targets = config.targets};

  ModelPlan plan(config);
  plan.add("embedding", embedding(shape, {.vocabulary = config.vocab,
                                          .counts_positions = true,
                                          .types = option<std::int64_t>(config.options, "types"),
                                          .norm = norm,
                                          .std = kStd}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::after_skip, norm, attention_branch(shape, attention)));
    plan.add("mlp", on_rows(layer + 1 < config.layers ? RowsRead{} : task.reads(trunk), shape,
                            [&](const UnitShape& rows) {
                              return half_block(rows, NormPlace::after_skip, norm,
                                                mlp_branch(rows, mlp));
                            }));
    plan.end_layer();
  }
  plan.add("head", task.head(trunk));

  return std::move(plan).build();
}

std::vector<StoredElsewhere> stored_bert(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  std::vector<StoredElsewhere> all{
      {"wte", {"bert.embeddings.word_embeddings.weight"}},
      {.ours = "000.embedding/wpe",
       .theirs = {"bert.embeddings.position_embeddings.weight"},
       .first_rows = true},
      {"000.embedding/wtt", {"bert.embeddings.token_type_embeddings.weight"}}};
  add_norm(all, "000.embedding/ln", "bert.embeddings.LayerNorm", true);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string attention = attention_unit(layer) + "/", mlp = mlp_unit(layer) + "/";
    const std::string theirs = fmt::format("bert.encoder.layer.{}.", layer);
    const std::string heads = theirs + "attention.self.";
    add_norm(all, attention + "ln", theirs + "attention.output.LayerNorm", true);
    add_dense(all, attention + "qkv", {heads + "query", heads + "key", heads + "value"}, true,
              true);
    add_dense(all, attention + "proj", {theirs + "attention.output.dense"}, true, true);
    add_norm(all, mlp + "ln", theirs + "output.LayerNorm", true);
    add_dense(all, mlp + "up", {theirs + "intermediate.dense"}, true, true);
    add_dense(all, mlp + "down", {theirs + "output.dense"}, true, true);
  }
  const std::string head = head_unit(layers) + "/", masked = "cls.predictions.";
  add_dense(all, head + "pooler", {"bert.pooler.dense"}, true, true, true);
  add_dense(all, head + "classes", {"classifier"}, true, true, true);
  add_dense(all, head + "span", {"qa_outputs"}, true, true, true);
  add_dense(all, head + "transform", {masked + "transform.dense"}, true, true, true);
  add_norm(all, head + "transform.ln", masked + "transform.LayerNorm", true, true);
  all.push_back({.ours = head + "logits.bias", .theirs = {masked + "bias"}, .optional = true});
  return all;
}

/// transformers' BertFor...
const HuggingFace& bert_elsewhere() {
  static const HuggingFace table{
      .model_type = "bert",
      .body = "bert.",
      .architectures = {{"masked-lm", "BertForMaskedLM"},
                        {"masked-lm", "BertForPreTraining"},
                        {"classification", "BertForSequenceClassification"},
                        {"question-answering", "BertForQuestionAnswering"},
                        {"", "BertModel"}},
      .keys = {{"num_hidden_layers", "model.layers"},
               {"hidden_size", "model.width"},
               {"num_attention_heads", "model.heads"},
               {"max_position_embeddings", "model.context", "512", true},
               {"vocab_size", "model.vocab"},
               {"intermediate_size", "model.bert.hidden"},
               {"layer_norm_eps", "model.bert.norm_eps", "1e-12"},
               {"type_vocab_size", "model.bert.types", "2"},
               {"num_labels", "model.classes"}},
      .rules = {{"hidden_act", "\"gelu\""},
                {"position_embedding_type", "\"absolute\""},
                {"is_decoder", "false"},
                {"add_cross_attention", "false"},
                {"tie_word_embeddings", "true"}},
      .unused = {"attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout",
                 "gradient_checkpointing"},
      .left_out = {"embeddings.position_ids", "cls.seq_relationship.weight",
                   "cls.seq_relationship.bias"},
      .copies = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                 {"cls.predictions.decoder.bias", "cls.predictions.bias"}},
      .tensors = stored_bert};
  return table;
}

}  // namespace

Family bert() {
  return {.make = make_bert,
          .hugging_face = bert_elsewhere,
          .usual_task = "masked-lm",
          .options = {{"hidden", std::int64_t{0},
                       "columns of the MLP between its maps; 0: 4 times the width", 0, 1 << 24},
                      {"norm_eps", 1e-12, "added to the variance of the layer norms", 0, 1},
                      {"types", std::int64_t{2}, "token types, such as first and second text", 1,
                       1 << 20}}};
}

}  // namespace concertina::families
