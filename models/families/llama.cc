// Llama (Touvron et al. 2023; grouped-query attention as in Llama 2 and 3): RMS norms, rotary
// positions, gated MLPs, no biases, and an untied output projection unless `tied` is set. The
// options also cover its descendants Mistral, Qwen 2 and 3, and Phi-3.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.h"
#include "models/families/half_blocks.h"

namespace concertina::families {
namespace {

std::int64_t kv_heads_of(const ModelConfig& config) {
  const auto kv_heads = option<std::int64_t>(config.options, "kv_heads");
  if (kv_heads > 0 && config.heads % kv_heads != 0)
    throw_input(fmt::format("{} key/value heads cannot be shared evenly by {} query heads",
                            kv_heads, config.heads),
                "model.llama.kv_heads", "a divisor of model.heads");
  return kv_heads;
}

double number(const ModelConfig& config, std::string_view name) {
  return option<double>(config.options, name);
}

constexpr std::string_view kScalings[] = {"none", "linear", "llama3", "yarn"};

/// Throws Error{bad_input} if the scaling lacks an option that it needs.
RotarySpec rotary_of(const ModelConfig& config) {
  const auto& name = option<std::string>(config.options, "rope_scaling");
  RotarySpec spec{
      .theta = number(config, "rope_theta"),
      .scaling = static_cast<RotarySpec::Scaling>(std::ranges::find(kScalings, name) -
                                                  std::begin(kScalings)),
      .factor = number(config, "rope_factor"),
      .original = static_cast<double>(option<std::int64_t>(config.options, "rope_original")),
      .low_factor = number(config, "rope_low"),
      .high_factor = number(config, "rope_high"),
      .fast_turns = number(config, "rope_fast"),
      .slow_turns = number(config, "rope_slow")};
  const bool by_original =
      spec.scaling == RotarySpec::Scaling::llama3 || spec.scaling == RotarySpec::Scaling::yarn;
  if (by_original && spec.original == 0)
    throw_input(fmt::format("rope_scaling = {} requires the original context length", name),
                "model.llama.rope_original", "a number of positions, such as 8192");
  if (spec.scaling == RotarySpec::Scaling::llama3 && spec.high_factor <= spec.low_factor)
    throw_input(fmt::format("rope_high = {} must be greater than rope_low = {}", spec.high_factor,
                            spec.low_factor),
                "model.llama.rope_high", "for example rope_low = 1, rope_high = 4");
  if (spec.scaling == RotarySpec::Scaling::yarn) {
    const double given = number(config, "rope_magnitude");
    spec.magnitude = given > 0 ? given : 0.1 * std::log(spec.factor) + 1;
  }
  return spec;
}

AttentionSpec attention_of(const ModelConfig& config, std::int64_t head_dim, float norm_eps) {
  const auto& biases = option<std::string>(config.options, "attention_bias");
  AttentionSpec spec{.heads = config.heads,
                     .kv_heads = kv_heads_of(config),
                     .head_dim = head_dim,
                     .qkv_bias = biases != "none",
                     .proj_bias = biases == "all",
                     .rotary = rotary_of(config)};
  if (option<bool>(config.options, "head_norms")) spec.norm_eps = norm_eps;
  return spec;
}

void check_window(const ModelConfig& config) {
  const auto window = option<std::int64_t>(config.options, "window");
  if (window > 0 && config.context > window)
    throw_input(fmt::format("this model has a sliding window of {} keys, which is not supported "
                            "for a context of {}",
                            window, config.context),
                "model.context", fmt::format("at most {}, the size of the window", window));
}

std::unique_ptr<Model> make_llama(const ModelConfig& config) {
  const auto given = option<std::int64_t>(config.options, "head_dim");
  check_sizes(config, given == 0);
  check_window(config);
  const std::int64_t head_dim = given > 0 ? given : config.width / config.heads;
  if (head_dim % 2 != 0)
    throw_input(fmt::format("rotary positions need an even head size, got {}", head_dim),
                given > 0 ? "model.llama.head_dim" : "model.heads",
                "a model.heads for which model.width / model.heads is even, or an even head_dim");
  const auto init = static_cast<float>(config.init_std);
  Trunk trunk = trunk_of(config);
  trunk.tied = option<bool>(config.options, "tied");
  trunk.causal = true;
  trunk.norm = norm_of(config, NormSpec::Kind::rms);
  AttentionSpec attention = attention_of(config, head_dim, trunk.norm->eps);
  attention.std = init;
  attention.residual_std = residual_std_of(config, init);
  return build(
      config,
      {.embedding = embedding(
           trunk.shape,
           {.vocabulary = config.vocab, .tied = trunk.tied, .positions = false, .std = init}),
       .norm = *trunk.norm,
       .attention = attention,
       .mlp = mlp_of(config, attention.residual_std, true),
       .trunk = trunk});
}

}  // namespace

Family llama() {
  return {
      .make = make_llama,
      .options = {
          hidden_option(
              "hidden size of the MLP (0: 8/3 of the width, rounded up to a multiple of 32)"),
          {"kv_heads", std::int64_t{0},
           "number of key/value heads, a divisor of model.heads (0: same as model.heads)", 0,
           1 << 20},
          norm_eps_option(1e-5, "epsilon added to the mean square in the RMS norms"),
          rope_theta_option(),
          tied_option(),
          {"head_dim", std::int64_t{0},
           "columns per head (0: model.width / model.heads, which must be an integer)", 0, 1 << 20},
          choice("attention_bias", "none",
                 "biases in attention: none, on queries, keys and values only (qkv; Qwen 2), or on "
                 "the output projection too (all)",
                 {"none", "qkv", "all"}),
          {"head_norms", false,
           "apply an RMS norm to each query and key head before the rotation (Qwen 3)"},
          {"window", std::int64_t{0},
           "size of the sliding attention window (Mistral); model.context must not exceed it (0: "
           "no window)",
           0, 1 << 30},
          choice("rope_scaling", "none", "how rotary positions are scaled to longer contexts",
                 {std::begin(kScalings), std::end(kScalings)}),
          {"rope_factor", 1.0, "factor by which rope_scaling extends the context", 1, 1e6},
          {"rope_original", std::int64_t{0},
           "original context length, before scaling (llama3 and yarn)", 0, 1 << 30},
          {"rope_low", 1.0, "wavelengths above rope_original / rope_low are scaled fully (llama3)",
           0, 1e6},
          {"rope_high", 4.0, "wavelengths below rope_original / rope_high are not scaled (llama3)",
           0, 1e6},
          {"rope_fast", 32.0, "pairs with more rotations over rope_original are not scaled (yarn)",
           0, 1e6},
          {"rope_slow", 1.0,
           "pairs with fewer rotations over rope_original are scaled fully (yarn)", 0, 1e6},
          {"rope_magnitude", 0.0,
           "factor applied to cosine and sine (yarn; 0: 0.1 ln(rope_factor) + 1)", 0, 1e6}}};
}

}  // namespace concertina::families
