// The Bert... classes of transformers.
#include "models/published/bert_like.h"

namespace concertina::published {

HuggingFace bert() {
  const std::string masked = "cls.predictions.";
  HuggingFace table = bert_like("Bert", "bert.",
                                {"bert.pooler.dense", "classifier", masked + "transform.dense",
                                 masked + "transform.LayerNorm", masked + "bias"});
  table.architectures.insert(table.architectures.begin() + 1, {"masked-lm", "BertForPreTraining"});
  table.fixed = {{"model.bert.pooler", "tanh"}};
  table.left_out.insert(table.left_out.end(),
                        {"cls.seq_relationship.weight", "cls.seq_relationship.bias"});
  table.copies = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                  {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  return table;
}

}  // namespace concertina::published
