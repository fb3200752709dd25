// What the types of encoders that came of BERT have in common.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// Adds the token table, positions from row `skipped_rows` on, token types, norm, and all layers,
/// as transformers' BertModel names them; `body`: "bert.".
void add_bert_body(std::vector<StoredElsewhere>& all, const ModelConfig& config,
                   const std::string& body, std::int64_t skipped_rows = 0);

/// The keys of config.json; `skipped_rows`: of the table of positions.
std::vector<KeyElsewhere> bert_keys(std::int64_t skipped_rows = 0);

/// All but `architectures` and `tensors`.
HuggingFace bert_like(const std::string& body, std::int64_t skipped_rows = 0);

/// A type whose head for tokens has a GELU, whatever the MLPs have: these must have the same.
void require_gelu(HuggingFace& table);

/// RoBERTa (Liu et al. 2019): a BERT whose first position has row 2, with heads of its own names.
/// `prefix`: of the classes, "Roberta".
HuggingFace roberta_like(const std::string& prefix);

}  // namespace concertina::published
