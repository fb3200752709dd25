// Shared by the encoder types that descend from BERT.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// Names of the maps in an encoder's heads. For tags and spans, they are the same in all types.
struct EncoderHeads {
  std::string pooler, classes;  // classification of a whole text
  /// The masked-token head consists of a linear map, its norm and the logit bias.
  std::string transform, transform_norm, logits_bias;
};

/// Adds the linear maps of all heads.
void add_encoder_heads(std::vector<TensorMapping>& all, std::int64_t layers,
                       const EncoderHeads& names);

/// Returns an encoder's classes for each task, and the body. `prefix` is, for example, "Bert".
std::vector<Architecture> encoders(const std::string& prefix);

/// Returns the table of an encoder whose body has BertModel's tensor names. `body` is, for example,
/// "bert.". `skipped_rows` is the number of rows in the position table before the first position.
HuggingFace bert_like(const std::string& prefix, const std::string& body, const EncoderHeads& heads,
                      std::int64_t skipped_rows = 0);

/// Requires the MLPs to use GELU, for types whose masked-token head always uses it.
void require_gelu(HuggingFace& table);

/// RoBERTa (Liu et al. 2019): BERT with the first position in row 2 and different head names.
HuggingFace roberta_like(const std::string& prefix);

}  // namespace concertina::published
