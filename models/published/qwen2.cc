// The Qwen2... classes of transformers (Qwen 2, 2.5; Yang et al. 2024): Llama with q, k, v biases.
#include "models/published/llama_like.h"

namespace concertina::published {

HuggingFace qwen2() {
  HuggingFace table = llama_like("Qwen2");
  remove_keys(table, {"attention_bias", "mlp_bias", "rope_interleaved", "pretraining_tp"});
  put_context(table, "32768");
  put_key(table, key_value_heads("32"));
  table.fixed = {{"model.llama.head_norms", "false"},
                 {"model.llama.window", "0"},
                 {"model.llama.attention_bias", "qkv"}};
  table.rules.push_back({"use_sliding_window", "false"});
  table.unused = {"sliding_window", "max_window_layers", "use_mrope"};
  return table;
}

}  // namespace concertina::published
