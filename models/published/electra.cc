// The Electra... classes of transformers (Clark et al. 2020), for models whose embedding size
// equals the hidden size. The task of the discriminator is not supported.
#include "models/published/bert_like.h"

namespace concertina::published {
HuggingFace electra() {
  HuggingFace table =
      bert_like("Electra", "electra.",
                {"classifier.dense", "classifier.out_proj", "generator_predictions.dense",
                 "generator_predictions.LayerNorm", "generator_lm_head.bias"});
  table.architectures.insert(table.architectures.end() - 1, {"", "ElectraForPreTraining"});
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
  return table;
}

}  // namespace concertina::published
