#include "models/published/neox_like.h"

#include <fmt/format.h>

namespace concertina::published {

HuggingFace neox_like(const std::string& prefix, const std::string& body,
                      std::string_view default_activation) {
  using Use = KeyMapping::Use;
  return {.family = "neox",
          .body = body,
          .architectures = decoders(prefix),
          .keys = size_keys(
              "2048",
              {{.theirs = "intermediate_size", .ours = "model.neox.hidden", .zero = four_widths},
               activation_key("hidden_act", "model.neox.activation", default_activation),
               {"layer_norm_eps", "model.neox.norm_eps", "1e-05"},
               {"rope_parameters.rope_theta", "model.neox.rope_theta"},
               {.theirs = "rope_parameters.partial_rotary_factor", .ours = "model.neox.rope_share"},
               {"attention_dropout", "model.attention_dropout", "0.0", Use::advice}}),
          .rules = {{"rope_parameters.rope_type", "\"default\""}, {"rope_scaling", "null"}},
          .left_out = {".rotary_emb.inv_freq"}};
}

std::string layer_unit(std::int64_t layer) {
  return fmt::format("{:03}.layer/", 1 + layer);
}

void add_neox_head(std::vector<TensorMapping>& all, const ModelConfig& config,
                   const std::string& norm, const std::string& logits, bool bias,
                   const std::string& tags) {
  const std::string head = fmt::format("{:03}.head/", 1 + config.layers);
  add_norm(all, head + "ln", norm, true);
  add_dense(all, head + "head", {logits}, true, bias, true);
  add_dense(all, head + "classes", {"score"}, true, false, true);
  add_dense(all, head + "tags", {tags}, true, true, true);
}

}  // namespace concertina::published
