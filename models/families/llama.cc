// Llama (Touvron et al. 2023; grouped-query attention as in Llama 2 and 3): RMS norms, rotary
// positions, gated MLPs, no biases, and logits by a map of their own unless they are tied.
// Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of layer l; 2L + 1 head.
#include "core/error.h"
#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/gated_mlp.h"

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

  ModelPlan plan(config);
  plan.add("embedding",
           embedding(shape,
                     {.vocabulary = config.vocab, .tied = tied, .positions = false, .std = kStd}));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    plan.add("attention",
             half_block(shape, NormPlace::before_branch, norm, attention_branch(shape, attention)));
    plan.add("mlp",
             half_block(shape, NormPlace::before_branch, norm, gated_mlp_branch(shape, mlp)));
    plan.end_layer();
  }
  plan.add("head", task.head({.shape = shape,
                              .vocabulary = config.vocab,
                              .classes = config.classes,
                              .tied = tied,
                              .causal = true,
                              .norm = norm,
                              .std = kStd}));
  return std::move(plan).build();
}

}  // namespace

Family llama() {
  return {
      .make = make_llama,
      .options = {{"hidden", std::int64_t{0},
                   "columns of the MLP between its maps; 0: 8/3 of the width, in 32s", 0, 1 << 24},
                  {"kv_heads", std::int64_t{0},
                   "key and value heads, which divide model.heads; 0: as many", 0, 1 << 20},
                  {"norm_eps", 1e-5, "added to the mean square of the RMS norms", 0, 1},
                  {"rope_theta", 1e4, "base of the wavelengths of rotary positions", 1, 1e12},
                  {"tied", false, "logits by the token table, in place of a map of their own"}}};
}

}  // namespace concertina::families
