#include "models/published/llama_like.h"

#include <fmt/format.h>

namespace concertina::published {
namespace {

using Use = KeyMapping::Use;
using Written = KeyMapping::Written;

std::int64_t head_dim_of(const ModelConfig& config) {
  return config.width / config.heads;
}

/// Returns the column counts of q, k and v.
std::vector<std::int64_t> qkv_columns(const ModelConfig& config) {
  const auto number = [&](const char* name) { return option<std::int64_t>(config.options, name); };
  const std::int64_t head_dim = number("head_dim") > 0 ? number("head_dim") : head_dim_of(config);
  const std::int64_t kv = number("kv_heads") > 0 ? number("kv_heads") : config.heads;
  return {config.heads * head_dim, kv * head_dim, kv * head_dim};
}

std::vector<TensorMapping> tensors_of(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  const std::vector<std::int64_t> qkv = qkv_columns(config);
  std::vector<TensorMapping> all;
  add_token_table(all, "model.embed_tokens.weight");
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string attention = attention_unit(layer) + "/", mlp = mlp_unit(layer) + "/";
    const std::string theirs = fmt::format("model.layers.{}.", layer);
    const std::string heads = theirs + "self_attn.";
    add_norm(all, attention + "ln", theirs + "input_layernorm", false);
    add_dense(all, attention + "qkv", {heads + "q_proj", heads + "k_proj", heads + "v_proj"}, true,
              true, false, qkv);
    add_dense(all, attention + "proj", {heads + "o_proj"}, true, true);
    add_norm(all, attention + "q_norm", heads + "q_norm", false);
    add_norm(all, attention + "k_norm", heads + "k_norm", false);
    add_norm(all, mlp + "ln", theirs + "post_attention_layernorm", false);
    add_dense(all, mlp + "gate_up", {theirs + "mlp.gate_proj", theirs + "mlp.up_proj"}, true,
              false);
    add_dense(all, mlp + "down", {theirs + "mlp.down_proj"}, true, false);
  }
  add_norm(all, head_unit(layers) + "/ln", "model.norm", false);
  add_dense(all, head_unit(layers) + "/head", {"lm_head"}, true, false, true);
  add_dense(all, head_unit(layers) + "/classes", {"score"}, true, false, true);
  add_dense(all, head_unit(layers) + "/tags", {"score"}, true, true, true);
  return all;
}

/// Adds the rotary-position keys in the formats of transformers 5 and earlier versions. Both are
/// written, because each version ignores the other's keys and would use its defaults.
void add_rotary_keys(std::vector<KeyMapping>& keys) {
  const std::vector<SameWord> scalings{{"\"default\"", "none"},
                                       {"\"linear\"", "linear"},
                                       {"\"llama3\"", "llama3"},
                                       {"\"yarn\"", "yarn"}};
  keys.push_back({"rope_parameters.rope_theta", "model.llama.rope_theta"});
  keys.push_back({"rope_theta", "model.llama.rope_theta", "10000.0"});
  keys.push_back({.theirs = "rope_parameters.rope_type",
                  .ours = "model.llama.rope_scaling",
                  .default_value = "\"default\"",
                  .words = scalings});
  keys.push_back({.theirs = "rope_scaling.rope_type",
                  .ours = "model.llama.rope_scaling",
                  .written = Written::if_set,
                  .words = scalings});
  for (const char* theirs : {"rope_scaling.type", "rope_parameters.type"})
    keys.push_back({.theirs = theirs,
                    .ours = "model.llama.rope_scaling",
                    .written = Written::never,
                    .words = scalings});
  struct Number {
    std::string name;
    std::string_view ours, default_value;
    std::vector<FixedKey> where;
    Written written = Written::always;
  };
  constexpr std::string_view kScaling = "model.llama.rope_scaling";
  const FixedKey linear{kScaling, "linear"}, llama3{kScaling, "llama3"}, yarn{kScaling, "yarn"};
  for (const auto& [name, ours, default_value, where, written] :
       {Number{"factor", "model.llama.rope_factor", "1.0", {linear, llama3, yarn}},
        {"original_max_position_embeddings", "model.llama.rope_original", "0", {llama3, yarn}},
        {"low_freq_factor", "model.llama.rope_low", "1.0", {llama3}},
        {"high_freq_factor", "model.llama.rope_high", "4.0", {llama3}},
        {"beta_fast", "model.llama.rope_fast", "32.0", {yarn}},
        {"beta_slow", "model.llama.rope_slow", "1.0", {yarn}},
        {"attention_factor", "model.llama.rope_magnitude", "0.0", {yarn}, Written::if_set}}) {
    keys.push_back({.theirs = "rope_parameters." + name,
                    .ours = ours,
                    .default_value = default_value,
                    .written = written,
                    .where = where});
    keys.push_back(
        {.theirs = "rope_scaling." + name, .ours = ours, .written = written, .where = where});
  }
}

}  // namespace

HuggingFace llama_like(const std::string& prefix) {
  HuggingFace table{
      .family = "llama",
      .body = "model.",
      .architectures = decoders(prefix),
      .keys =
          size_keys("2048", {{.theirs = "intermediate_size",
                              .ours = "model.llama.hidden",
                              .zero = [](const ModelConfig& of) { return gated_hidden(of.width); }},
                             key_value_heads("0"),
                             {.theirs = "head_dim",
                              .ours = "model.llama.head_dim",
                              .default_value = "0",
                              .written = Written::if_set},
                             {"rms_norm_eps", "model.llama.norm_eps", "1e-06"},
                             {"tie_word_embeddings", "model.llama.tied", "false"},
                             {.theirs = "attention_bias",
                              .ours = "model.llama.attention_bias",
                              .default_value = "false",
                              .words = {{"false", "none"}, {"true", "all"}}},
                             {"attention_dropout", "model.attention_dropout", "0.0", Use::advice}}),
      .fixed = {{"model.llama.head_norms", "false"}, {"model.llama.window", "0"}},
      .rules = {{"hidden_act", "\"silu\"", "\"swish\""},
                {"mlp_bias", "false"},
                {"rope_interleaved", "false"},
                {"pretraining_tp", "1"}},
      .unused = {"is_llama_config", "rope_scaling.finetuned"},
      .left_out = {".rotary_emb.inv_freq"},
      .copies = {{"lm_head.weight", "model.embed_tokens.weight"}},
      .derived = {{"layer_types", full_attention}},
      .tensors = tensors_of};
  add_rotary_keys(table.keys);
  return table;
}

void put_key(HuggingFace& table, const KeyMapping& key) {
  remove_keys(table, {key.theirs});
  table.keys.push_back(key);
}

void remove_keys(HuggingFace& table, std::initializer_list<std::string_view> names) {
  for (const std::string_view theirs : names) {
    std::erase_if(table.keys, [&](const KeyMapping& key) { return key.theirs == theirs; });
    std::erase_if(table.rules, [&](const RuleMapping& rule) { return rule.theirs == theirs; });
  }
}

void put_context(HuggingFace& table, std::string_view default_value) {
  put_key(table, {"max_position_embeddings", "model.context", default_value, Use::at_most});
}

KeyMapping key_value_heads(std::string_view default_value) {
  return {.theirs = "num_key_value_heads",
          .ours = "model.llama.kv_heads",
          .default_value = default_value,
          .zero = [](const ModelConfig& of) { return of.heads; },
          .null = "0"};
}

std::string full_attention(const ModelConfig& config) {
  std::string list;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    list += layer == 0 ? "\"full_attention\"" : ",\"full_attention\"";
  return "[" + list + "]";
}

}  // namespace concertina::published
