// The Phi3... classes of transformers (Abdin et al. 2024): Llama with fused q, k, v and gate, up.
#include <fmt/format.h>

#include "models/published/llama_like.h"

namespace concertina::published {
namespace {

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  std::vector<TensorMapping> all = llama_like("Phi3").tensors(config);
  std::erase_if(all, [](const TensorMapping& one) {
    return one.ours.find("/qkv.") != std::string::npos ||
           one.ours.find("/gate_up.") != std::string::npos;
  });
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string theirs = fmt::format("model.layers.{}.", layer);
    add_dense(all, attention_unit(layer) + "/qkv", {theirs + "self_attn.qkv_proj"}, true, false);
    add_dense(all, mlp_unit(layer) + "/gate_up", {theirs + "mlp.gate_up_proj"}, true, false);
  }
  return all;
}

}  // namespace

HuggingFace phi3() {
  using Use = KeyMapping::Use;
  HuggingFace table = llama_like("Phi3");
  remove_keys(table, {"mlp_bias", "rope_interleaved", "pretraining_tp", "head_dim"});
  put_context(table, "4096");
  put_key(table, {"rms_norm_eps", "model.llama.norm_eps", "1e-05"});
  put_key(table, {"resid_pdrop", "model.dropout", "0.0", Use::advice});
  put_key(table, {.theirs = "attention_bias",
                  .ours = "model.llama.attention_bias",
                  .default_value = "false",
                  .words = {{"false", "none"}}});
  put_key(table, {.theirs = "sliding_window",
                  .ours = "model.llama.window",
                  .default_value = "0",
                  .written = KeyMapping::Written::if_set});
  table.fixed = {{"model.llama.head_norms", "false"}, {"model.llama.head_dim", "0"}};
  table.rules.push_back({"partial_rotary_factor", "1.0"});
  table.rules.push_back({"rope_parameters.partial_rotary_factor", "1.0"});
  table.unused = {"embd_pdrop", "original_max_position_embeddings",
                  "rope_parameters.original_max_position_embeddings"};
  // Keys of longrope, a kind of RoPE scaling that is rejected by its name.
  for (const char* factors : {"rope_scaling.long_factor", "rope_scaling.short_factor",
                              "rope_parameters.long_factor", "rope_parameters.short_factor"})
    table.unused.push_back(factors);
  table.derived.clear();
  table.tensors = tensors_of;
  return table;
}

}  // namespace concertina::published
