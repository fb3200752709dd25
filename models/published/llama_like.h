// What the types of decoders that came of Llama have in common.
#pragma once

#include "models/hugging_face.h"
#include "models/model.h"

namespace concertina::published {

/// The whole table of Llama itself. `prefix`: of the classes, "Llama".
HuggingFace llama_like(const std::string& prefix);

/// Puts `key` in the place of the one of the same name of theirs, or adds it.
void put_key(HuggingFace& table, const KeyElsewhere& key);
/// Removes the keys and rules of these names of theirs.
void remove_keys(HuggingFace& table, std::initializer_list<std::string_view> names);
/// Puts the key of the context, of which a missing one means `usual`.
void put_context(HuggingFace& table, std::string_view usual);

/// The key of that name. `usual`: what a missing one means; null means as many as heads.
KeyElsewhere key_value_heads(std::string_view usual);

/// "full_attention" for each layer.
std::string full_attention(const ModelConfig& config);

}  // namespace concertina::published
