// What the types of encoders that came of BERT have in common.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// Their names for the parts of the heads.
struct BertHeads {
  std::string pooler, classes, transform, transform_norm, logits_bias;
};
/// Adds the heads of all tasks.
void add_bert_heads(std::vector<StoredElsewhere>& all, const ModelConfig& config,
                    const BertHeads& names);
/// All tensors: the token table, positions from row `skipped_rows` on, token types, norm, and all
/// layers, as transformers' BertModel names them; `body`: "bert."; and the heads.
std::vector<StoredElsewhere> bert_tensors(const ModelConfig& config, const std::string& body,
                                          const BertHeads& heads, std::int64_t skipped_rows = 0);

/// All but `architectures` and `tensors`; `skipped_rows`: of the table of positions.
HuggingFace bert_like(const std::string& body, std::int64_t skipped_rows = 0);

/// A type whose head for tokens has a GELU, whatever the MLPs have: these must have the same.
void require_gelu(HuggingFace& table);

/// RoBERTa (Liu et al. 2019): a BERT whose first position has row 2, with heads of its own names.
/// `prefix`: of the classes, "Roberta".
HuggingFace roberta_like(const std::string& prefix);

}  // namespace concertina::published
