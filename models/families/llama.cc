// Llama (Touvron et al. 2023; grouped-query attention as in Llama 2 and 3): RMS norms, rotary
// positions, gated MLPs, no biases, and logits by a map of their own unless they are tied.
// Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of layer l; 2L + 1 head.
#include <fmt/format.h>

#include "core/error.h"
#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

/// 8/3 C, as many parameters as an MLP of 4 C has, to the next multiple of 32.
std::int64_t usual_hidden(std::int64_t width) {
  return (8 * width + 3 * 32 - 1) / (3 * 32) * 32;
}

std::int64_t kv_heads_of(const ModelConfig& config) {
  const auto kv_heads = option<std::int64_t>(config.options, "kv_heads");
  if (kv_heads > 0 && config.heads % kv_heads != 0)
    throw_input(
        fmt::format("{} key heads cannot be shared evenly by {} heads", kv_heads, config.heads),
        "model.llama.kv_heads", "a divisor of model.heads");
  return kv_heads;
}

std::unique_ptr<Model> make_llama(const ModelConfig& config) {
  check_sizes(config);
  if (config.width / config.heads % 2 != 0)
    throw_input(fmt::format("heads of {} columns have no pairs to rotate by their position",
                            config.width / config.heads),
                "model.heads", "a model.heads that divides model.width into even parts");
  const UnitShape shape = unit_shape(config);
  const auto hidden = option<std::int64_t>(config.options, "hidden");
  const bool tied = option<bool>(config.options, "tied");
  constexpr float kStd = 0.02F;
  const float residual_std = residual_std_of(config, kStd);
  const NormSpec norm{.kind = NormSpec::Kind::rms,
                      .eps = static_cast<float>(option<double>(config.options, "norm_eps"))};
  const AttentionSpec attention{.heads = config.heads,
                                .kv_heads = kv_heads_of(config),
                                .bias = false,
                                .rotary_theta = option<double>(config.options, "rope_theta"),
                                .std = kStd,
                                .residual_std = residual_std};
  const GatedMlpSpec mlp{.hidden = hidden > 0 ? hidden : usual_hidden(config.width),
                         .std = kStd,
                         .residual_std = residual_std};
  const Task& task = find_task(config.task);
  const Trunk trunk{.shape = shape,
                    .vocabulary = config.vocab,
                    .classes = config.classes,
                    .tied = tied,
                    .causal = true,
                    .norm = norm,
                    .std = kStd};

  ModelPlan plan(config);
  plan.add("embedding",
           embedding(shape,
                     {.vocabulary = config.vocab, .tied = tied, .positions = false, .std = kStd}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::before_branch, norm, attention_branch(shape, attention)));
    plan.add("mlp", on_rows(layer + 1 < config.layers ? RowsRead{} : task.reads(trunk), shape,
                            [&](const UnitShape& rows) {
                              return half_block(rows, NormPlace::before_branch, norm,
                                                gated_mlp_branch(rows, mlp));
                            }));
    plan.end_layer();
  }
  plan.add("head", task.head(trunk));

  return std::move(plan).build();
}

std::vector<StoredElsewhere> stored_llama(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  // The token table is the whole model's where it is tied, else the embedding's.
  std::vector<StoredElsewhere> all{
      {.ours = "wte", .theirs = {"model.embed_tokens.weight"}, .optional = true},
      {.ours = "000.embedding/wte", .theirs = {"model.embed_tokens.weight"}, .optional = true}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string attention = attention_unit(layer) + "/", mlp = mlp_unit(layer) + "/";
    const std::string theirs = fmt::format("model.layers.{}.", layer);
    const std::string heads = theirs + "self_attn.";
    add_norm(all, attention + "ln", theirs + "input_layernorm", false);
    add_dense(all, attention + "qkv", {heads + "q_proj", heads + "k_proj", heads + "v_proj"}, true,
              false);
    add_dense(all, attention + "proj", {heads + "o_proj"}, true, false);
    add_norm(all, mlp + "ln", theirs + "post_attention_layernorm", false);
    add_dense(all, mlp + "gate_up", {theirs + "mlp.gate_proj", theirs + "mlp.up_proj"}, true,
              false);
    add_dense(all, mlp + "down", {theirs + "mlp.down_proj"}, true, false);
  }
  add_norm(all, head_unit(layers) + "/ln", "model.norm", false);
  add_dense(all, head_unit(layers) + "/head", {"lm_head"}, true, false, true);
  add_dense(all, head_unit(layers) + "/classes", {"score"}, true, false, true);
  return all;
}

/// transformers' LlamaFor...
const HuggingFace& llama_elsewhere() {
  static const HuggingFace table{
      .model_type = "llama",
      .body = "model.",
      .architectures = {{"causal-lm", "LlamaForCausalLM"},
                        {"classification", "LlamaForSequenceClassification"},
                        {"", "LlamaModel"}},
      .keys = {{"num_hidden_layers", "model.layers"},
               {"hidden_size", "model.width"},
               {"num_attention_heads", "model.heads"},
               {"max_position_embeddings", "model.context", "2048", true},
               {"vocab_size", "model.vocab"},
               {"intermediate_size", "model.llama.hidden"},
               {"num_key_value_heads", "model.llama.kv_heads", "0"},
               {"rms_norm_eps", "model.llama.norm_eps", "1e-06"},
               {"rope_parameters.rope_theta", "model.llama.rope_theta"},
               {"rope_theta", "model.llama.rope_theta", "10000.0", false, false},
               {"tie_word_embeddings", "model.llama.tied", "false"},
               {"num_labels", "model.classes"}},
      .rules = {{"hidden_act", "\"silu\""},
                {"attention_bias", "false"},
                {"mlp_bias", "false"},
                {"rope_parameters.rope_type", "\"default\""},
                {"rope_scaling", "null"},
                {"pretraining_tp", "1"}},
      .left_out = {".rotary_emb.inv_freq"},
      .copies = {{"lm_head.weight", "model.embed_tokens.weight"}},
      .derived = {{"head_dim", [](const ModelConfig& of) { return of.width / of.heads; }}},
      .tensors = stored_llama};
  return table;
}

}  // namespace

Family llama() {
  return {
      .make = make_llama,
      .hugging_face = llama_elsewhere,
      .options = {{"hidden", std::int64_t{0},
                   "columns of the MLP between its maps; 0: 8/3 of the width, in 32s", 0, 1 << 24},
                  {"kv_heads", std::int64_t{0},
                   "key and value heads, which divide model.heads; 0: as many", 0, 1 << 20},
                  {"norm_eps", 1e-5, "added to the mean square of the RMS norms", 0, 1},
                  {"rope_theta", 1e4, "base of the wavelengths of rotary positions", 1, 1e12},
                  {"tied", false, "logits by the token table, in place of a map of their own"}}};
}

}  // namespace concertina::families
