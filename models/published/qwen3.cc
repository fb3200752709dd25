// The Qwen3... classes of transformers (Yang et al. 2025): Llama with norms on the q and k heads.
#include "models/published/llama_like.h"

namespace concertina::published {

HuggingFace qwen3() {
  HuggingFace table = llama_like("Qwen3");
  remove_keys(table, {"mlp_bias", "rope_interleaved", "pretraining_tp"});
  put_context(table, "32768");
  put_key(table, {.theirs = "head_dim", .ours = "model.llama.head_dim", .default_value = "128"});
  put_key(table, key_value_heads("32"));
  table.fixed = {{"model.llama.head_norms", "true"}, {"model.llama.window", "0"}};
  table.rules.push_back({"use_sliding_window", "false"});
  table.unused = {"sliding_window", "max_window_layers"};
  return table;
}

}  // namespace concertina::published
