// transformers' Electra... (Clark et al. 2020), of the sizes whose embeddings have the model's
// width. Its discriminator's own task is not one here.
#include "models/published/bert_like.h"

namespace concertina::published {

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
  table.tensors = [](const ModelConfig& config) {
    return bert_tensors(config, "electra.",
                        {"classifier.dense", "classifier.out_proj", "generator_predictions.dense",
                         "generator_predictions.LayerNorm", "generator_lm_head.bias"});
  };
  return table;
}

}  // namespace concertina::published
