// transformers' Mistral... (Jiang et al. 2023): a Llama whose queries may see a window of keys
// alone.
#include "models/published/llama_like.h"

namespace concertina::published {

HuggingFace mistral() {
  HuggingFace table = llama_like("Mistral");
  remove_key(table, "attention_bias");
  for (const char* absent : {"mlp_bias", "rope_interleaved", "pretraining_tp"})
    remove_key(table, absent);
  table.fixed = {{"model.llama.head_norms", "false"}, {"model.llama.attention_bias", "none"}};
  put_key(table,
          {"max_position_embeddings", "model.context", "131072", KeyElsewhere::Use::at_most});
  put_key(table, key_value_heads("8"));
  put_key(table,
          {.theirs = "sliding_window", .ours = "model.llama.window", .usual = "4096", .null = "0"});
  table.derived.clear();
  return table;
}

}  // namespace concertina::published
