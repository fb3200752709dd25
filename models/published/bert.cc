// transformers' Bert...
#include "models/published/bert_like.h"

namespace concertina::published {
namespace {

std::vector<StoredElsewhere> tensors_of(const ModelConfig& config) {
  std::vector<StoredElsewhere> all;
  add_bert_body(all, config, "bert.");
  const std::string head = head_unit(config.layers) + "/", masked = "cls.predictions.";
  add_dense(all, head + "pooler", {"bert.pooler.dense"}, true, true, true);
  add_dense(all, head + "classes", {"classifier"}, true, true, true);
  add_dense(all, head + "tags", {"classifier"}, true, true, true);
  add_dense(all, head + "span", {"qa_outputs"}, true, true, true);
  add_dense(all, head + "transform", {masked + "transform.dense"}, true, true, true);
  add_norm(all, head + "transform.ln", masked + "transform.LayerNorm", true, true);
  all.push_back({.ours = head + "logits.bias", .theirs = {masked + "bias"}, .optional = true});
  return all;
}

}  // namespace

HuggingFace bert() {
  HuggingFace table = bert_like("bert.");
  table.architectures = {{"masked-lm", "BertForMaskedLM"},
                         {"masked-lm", "BertForPreTraining"},
                         {"classification", "BertForSequenceClassification"},
                         {"token-classification", "BertForTokenClassification"},
                         {"question-answering", "BertForQuestionAnswering"},
                         {"", "BertModel"}};
  table.fixed = {{"model.bert.pooler", "tanh"}};
  table.left_out.insert(table.left_out.end(),
                        {"cls.seq_relationship.weight", "cls.seq_relationship.bias"});
  table.copies = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                  {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  table.tensors = tensors_of;
  return table;
}

}  // namespace concertina::published
