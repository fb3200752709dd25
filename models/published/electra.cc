// transformers' Electra... (Clark et al. 2020), of the sizes whose embeddings have the model's
// width. Its discriminator's own task is not one here.
#include "models/published/bert_like.h"

namespace concertina::published {
namespace {

std::vector<StoredElsewhere> tensors_of(const ModelConfig& config) {
  std::vector<StoredElsewhere> all;
  add_bert_body(all, config, "electra.");
  const std::string head = head_unit(config.layers) + "/";
  add_dense(all, head + "pooler", {"classifier.dense"}, true, true, true);
  add_dense(all, head + "classes", {"classifier.out_proj"}, true, true, true);
  add_dense(all, head + "tags", {"classifier"}, true, true, true);
  add_dense(all, head + "span", {"qa_outputs"}, true, true, true);
  add_dense(all, head + "transform", {"generator_predictions.dense"}, true, true, true);
  add_norm(all, head + "transform.ln", "generator_predictions.LayerNorm", true, true);
  all.push_back(
      {.ours = head + "logits.bias", .theirs = {"generator_lm_head.bias"}, .optional = true});
  return all;
}

}  // namespace

HuggingFace electra() {
  HuggingFace table = bert_like("electra.");
  table.architectures = {{"masked-lm", "ElectraForMaskedLM"},
                         {"classification", "ElectraForSequenceClassification"},
                         {"token-classification", "ElectraForTokenClassification"},
                         {"question-answering", "ElectraForQuestionAnswering"},
                         {"", "ElectraForPreTraining"},
                         {"", "ElectraModel"}};
  table.fixed = {{"model.bert.pooler", "gelu"}};
  require_gelu(table);
  table.unused.insert(table.unused.end(), {"summary_activation", "summary_last_dropout",
                                           "summary_type", "summary_use_proj"});
  table.left_out.insert(table.left_out.end(), {"discriminator_predictions.dense.weight",
                                               "discriminator_predictions.dense.bias",
                                               "discriminator_predictions.dense_prediction.weight",
                                               "discriminator_predictions.dense_prediction.bias"});
  table.copies = {{"generator_lm_head.weight", "electra.embeddings.word_embeddings.weight"}};
  table.keys.push_back({"embedding_size", "model.width"});
  table.tensors = tensors_of;
  return table;
}

}  // namespace concertina::published
