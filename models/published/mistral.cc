// The Mistral... classes of transformers (Jiang et al. 2023): Llama with an optional sliding
// window.
#include "models/published/llama_like.h"

namespace concertina::published {

HuggingFace mistral() {
  HuggingFace table = llama_like("Mistral");
  remove_keys(table, {"attention_bias", "mlp_bias", "rope_interleaved", "pretraining_tp"});
  table.fixed = {{"model.llama.head_norms", "false"}, {"model.llama.attention_bias", "none"}};
  put_context(table, "131072");
  put_key(table, key_value_heads("8"));
  put_key(table, {.theirs = "sliding_window",
                  .ours = "model.llama.window",
                  .default_value = "4096",
                  .null = "0"});
  table.derived.clear();
  return table;
}

}  // namespace concertina::published
