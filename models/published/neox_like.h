// What the types of decoders with parallel branches have in common: GPT-NeoX and Phi.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// All but `tensors` and the keys that either type has alone. `prefix`: of the classes,
/// "Phi"; `usual_activation`: as JSON.
HuggingFace neox_like(const std::string& prefix, const std::string& body,
                      std::string_view usual_activation);

/// "001.layer/".
std::string layer_unit(std::int64_t layer);
/// Adds the head after the last layer: its norm, the maps to the logits (`bias`: of that one), to
/// the classes, and to the `tags` of tokens.
void add_neox_head(std::vector<StoredElsewhere>& all, const ModelConfig& config,
                   const std::string& norm, const std::string& logits, bool bias,
                   const std::string& tags);

}  // namespace concertina::published
