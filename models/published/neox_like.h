// Shared by the decoder types with parallel branches: GPT-NeoX and Phi.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// Returns the table without `tensors` or keys specific to one type. Class names begin with
/// `prefix`, such as "Phi"; `default_activation` is JSON.
HuggingFace neox_like(const std::string& prefix, const std::string& body,
                      std::string_view default_activation);

/// Returns the unit of a layer as a name prefix: "001.layer/".
std::string layer_unit(std::int64_t layer);
/// Adds the head after the last layer: its norm, the maps to the logits (with a bias if `bias`) and
/// to the classes, and the token classifier named `tags`.
void add_neox_head(std::vector<TensorMapping>& all, const ModelConfig& config,
                   const std::string& norm, const std::string& logits, bool bias,
                   const std::string& tags);

}  // namespace concertina::published
