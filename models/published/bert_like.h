// What the types of encoders that came of BERT have in common.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// The names of the maps of an encoder's heads. Those of tags and spans are the same in all types.
struct EncoderHeads {
  std::string pooler, classes;  // of a text
  /// The head of masked tokens has a map, its norm, and the bias of the logits.
  std::string transform, transform_norm, logits_bias;
};

/// Adds the maps of all heads.
void add_encoder_heads(std::vector<StoredElsewhere>& all, std::int64_t layers,
                       const EncoderHeads& names);

/// An encoder's classes for each task, and the body. `prefix`: "Bert".
std::vector<Architecture> encoders(const std::string& prefix);

/// An encoder whose body transformers names as BertModel's. `body`: "bert."; `skipped_rows`: of the
/// table of positions, before the first position.
HuggingFace bert_like(const std::string& prefix, const std::string& body, const EncoderHeads& heads,
                      std::int64_t skipped_rows = 0);

/// A type whose head for tokens has a GELU, whatever the MLPs have: these must have the same.
void require_gelu(HuggingFace& table);

/// RoBERTa (Liu et al. 2019): a BERT whose first position has row 2, with heads of its own names.
HuggingFace roberta_like(const std::string& prefix);

}  // namespace concertina::published
