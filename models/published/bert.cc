// transformers' Bert...
#include "models/published/bert_like.h"

namespace concertina::published {

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
  table.tensors = [](const ModelConfig& config) {
    return bert_tensors(config, "bert.",
                        {"bert.pooler.dense", "classifier", "cls.predictions.transform.dense",
                         "cls.predictions.transform.LayerNorm", "cls.predictions.bias"});
  };
  return table;
}

}  // namespace concertina::published
