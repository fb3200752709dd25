#include "models/published/bert_like.h"

namespace concertina::published {
namespace {

/// Adds the token table, positions from row `skipped_rows`, token types, the norm and the layers.
void add_bert_body(std::vector<TensorMapping>& all, std::int64_t layers, const std::string& body,
                   std::int64_t skipped_rows) {
  const std::string embeddings = body + "embeddings.";
  all.push_back({"wte", {embeddings + "word_embeddings.weight"}});
  all.push_back({.ours = "000.embedding/wpe",
                 .theirs = {embeddings + "position_embeddings.weight"},
                 .first_rows = true,
                 .skipped_rows = skipped_rows});
  all.push_back({"000.embedding/wtt", {embeddings + "token_type_embeddings.weight"}});
  add_norm(all, "000.embedding/ln", embeddings + "LayerNorm", true);
  add_layers(all, layers, body + "encoder.layer.",
             {"attention.output.LayerNorm",
              {"attention.self.query", "attention.self.key", "attention.self.value"},
              "attention.output.dense",
              "output.LayerNorm",
              "intermediate.dense",
              "output.dense"});
}

/// Returns the keys of config.json.
std::vector<KeyMapping> bert_keys(std::int64_t skipped_rows) {
  using Use = KeyMapping::Use;
  return size_keys(
      "512",
      {{.theirs = "intermediate_size", .ours = "model.bert.hidden", .zero = four_widths},
       activation_key("hidden_act", "model.bert.activation", "\"gelu\""),
       {"layer_norm_eps", "model.bert.norm_eps", "1e-12"},
       {"type_vocab_size", "model.bert.types", "2"},
       {"hidden_dropout_prob", "model.dropout", "0.1", Use::advice},
       {"attention_probs_dropout_prob", "model.attention_dropout", "0.1", Use::advice}},
      skipped_rows);
}

}  // namespace

void add_encoder_heads(std::vector<TensorMapping>& all, std::int64_t layers,
                       const EncoderHeads& names) {
  const std::string head = head_unit(layers) + "/";
  add_dense(all, head + "pooler", {names.pooler}, true, true, true);
  add_dense(all, head + "classes", {names.classes}, true, true, true);
  add_dense(all, head + "tags", {"classifier"}, true, true, true);
  add_dense(all, head + "span", {"qa_outputs"}, true, true, true);
  add_dense(all, head + "transform", {names.transform}, true, true, true);
  add_norm(all, head + "transform.ln", names.transform_norm, true, true);
  all.push_back({.ours = head + "logits.bias", .theirs = {names.logits_bias}, .optional = true});
}

std::vector<Architecture> encoders(const std::string& prefix) {
  return {{"masked-lm", prefix + "ForMaskedLM"},
          {"classification", prefix + "ForSequenceClassification"},
          {"token-classification", prefix + "ForTokenClassification"},
          {"question-answering", prefix + "ForQuestionAnswering"},
          {"", prefix + "Model"}};
}

HuggingFace bert_like(const std::string& prefix, const std::string& body, const EncoderHeads& heads,
                      std::int64_t skipped_rows) {
  return {
      .family = "bert",
      .body = body,
      .architectures = encoders(prefix),
      .keys = bert_keys(skipped_rows),
      .rules = {{"position_embedding_type", "\"absolute\"", "null"},
                {"is_decoder", "false"},
                {"add_cross_attention", "false"},
                {"tie_word_embeddings", "true"}},
      .unused = {"directionality", "pooler_fc_size", "pooler_num_attention_heads",
                 "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"},
      .left_out = {"embeddings.position_ids", "embeddings.token_type_ids"},
      .renamed = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}},
      .head_dropouts = {{"classifier_dropout"}},
      .tensors = [=](const ModelConfig& config) {
        std::vector<TensorMapping> all;
        add_bert_body(all, config.layers, body, skipped_rows);
        add_encoder_heads(all, config.layers, heads);
        return all;
      }};
}

void require_gelu(HuggingFace& table) {
  std::erase_if(table.keys, [](const KeyMapping& key) { return key.theirs == "hidden_act"; });
  table.fixed.push_back({"model.bert.activation", "gelu"});
  table.rules.push_back({"hidden_act", "\"gelu\"", "\"gelu_python\""});
}

HuggingFace roberta_like(const std::string& prefix) {
  HuggingFace table = bert_like(prefix, "roberta.",
                                {"classifier.dense", "classifier.out_proj", "lm_head.dense",
                                 "lm_head.layer_norm", "lm_head.bias"},
                                2);
  table.positions_after = "pad_token_id";
  table.fixed = {{"model.bert.pooler", "tanh"}};
  require_gelu(table);
  // Classification reads the first row directly, without the pooler of the body.
  table.left_out.insert(table.left_out.end(), {"pooler.dense.weight", "pooler.dense.bias"});
  table.copies = {{"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"},
                  {"lm_head.decoder.bias", "lm_head.bias"}};
  return table;
}

}  // namespace concertina::published
