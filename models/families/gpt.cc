// GPT-2 (Radford et al. 2019; sizes from the config): embedding, then an attention and an MLP
// half-block per layer, then final norm and a head tied to the token embedding.
// Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of layer l; 2L + 1 head.
#include <fmt/format.h>

#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

std::unique_ptr<Model> make_gpt(const ModelConfig& config) {
  check_sizes(config);
  const UnitShape shape = unit_shape(config);
  constexpr float kStd = 0.02F;
  const float residual_std = residual_std_of(config, kStd);
  const AttentionSpec attention{.heads = config.heads, .std = kStd, .residual_std = residual_std};
  const MlpSpec mlp{.hidden = 4 * config.width, .std = kStd, .residual_std = residual_std};
  const Task& task = find_task(config.task);
  const Trunk trunk{.shape = shape,
                    .vocabulary = config.vocab,
                    .classes = config.classes,
                    .causal = true,
                    .norm = NormSpec(),
                    .std = kStd};

  ModelPlan plan(config);
  plan.add("embedding", embedding(shape, {.vocabulary = config.vocab, .std = kStd}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::before_branch, {}, attention_branch(shape, attention)));
    plan.add("mlp", on_rows(layer + 1 < config.layers ? RowsRead{} : task.reads(trunk), shape,
                            [&](const UnitShape& rows) {
                              return half_block(rows, NormPlace::before_branch, {},
                                                mlp_branch(rows, mlp));
                            }));
    plan.end_layer();
  }
  plan.add("head", task.head(trunk));

  return std::move(plan).build();
}

std::vector<StoredElsewhere> gpt2_tensors(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  std::vector<StoredElsewhere> all{
      {"wte", {"transformer.wte.weight"}},
      {.ours = "000.embedding/wpe", .theirs = {"transformer.wpe.weight"}, .first_rows = true}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string attention = attention_unit(layer) + "/", mlp = mlp_unit(layer) + "/";
    const std::string theirs = fmt::format("transformer.h.{}.", layer);
    add_norm(all, attention + "ln", theirs + "ln_1", true);
    add_dense(all, attention + "qkv", {theirs + "attn.c_attn"}, false, true);
    add_dense(all, attention + "proj", {theirs + "attn.c_proj"}, false, true);
    add_norm(all, mlp + "ln", theirs + "ln_2", true);
    add_dense(all, mlp + "up", {theirs + "mlp.c_fc"}, false, true);
    add_dense(all, mlp + "down", {theirs + "mlp.c_proj"}, false, true);
  }
  add_norm(all, head_unit(layers) + "/ln", "transformer.ln_f", true);
  add_dense(all, head_unit(layers) + "/classes", {"score"}, true, false, true);
  return all;
}

/// transformers' GPT2...; its maps are stored [in, out], but that to the classes.
const HuggingFace& gpt2() {
  static const HuggingFace table{
      .model_type = "gpt2",
      .body = "transformer.",
      .architectures = {{"causal-lm", "GPT2LMHeadModel"},
                        {"classification", "GPT2ForSequenceClassification"},
                        {"", "GPT2Model"}},
      .keys = {{"n_layer", "model.layers"},
               {"n_embd", "model.width"},
               {"n_head", "model.heads"},
               {"n_positions", "model.context", "1024", true},
               {"vocab_size", "model.vocab"},
               {"num_labels", "model.classes"}},
      .rules = {{"activation_function", "\"gelu_new\"", "\"gelu_pytorch_tanh\"", false},
                {"layer_norm_epsilon", "1e-05"},
                {"n_inner", "null"},
                {"scale_attn_weights", "true"},
                {"scale_attn_by_inverse_layer_idx", "false"},
                {"reorder_and_upcast_attn", "false"},
                {"add_cross_attention", "false"},
                {"tie_word_embeddings", "true"}},
      .unused = {"n_ctx", "attn_pdrop", "embd_pdrop", "resid_pdrop", "summary_activation",
                 "summary_first_dropout", "summary_proj_to_labels", "summary_type",
                 "summary_use_proj"},
      .left_out = {".attn.bias", ".attn.masked_bias"},
      .copies = {{"lm_head.weight", "transformer.wte.weight"}},
      .tensors = gpt2_tensors};
  return table;
}

}  // namespace

Family gpt() {
  return {.make = make_gpt, .hugging_face = gpt2};
}

}  // namespace concertina::families
