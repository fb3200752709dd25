// Shared by the decoder types that descend from Llama.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// Returns the complete table of Llama. Class names begin with `prefix`: "Llama".
HuggingFace llama_like(const std::string& prefix);

/// Adds `key`, or replaces the key with the same `theirs`.
void put_key(HuggingFace& table, const KeyMapping& key);
/// Removes the keys and rules whose `theirs` is one of these names.
void remove_keys(HuggingFace& table, std::initializer_list<std::string_view> names);
/// Sets the key for the context length; a missing key means `default_value`.
void put_context(HuggingFace& table, std::string_view default_value);

/// Returns the key for key/value heads: missing means `default_value`, null the number of heads.
KeyMapping key_value_heads(std::string_view default_value);

/// Returns "full_attention" for each layer, as a JSON list.
std::string full_attention(const ModelConfig& config);

}  // namespace concertina::published
