// GPT-2 (Radford et al. 2019; sizes from the config): embedding, then an attention and an MLP
// half-block per layer, then final norm and a head tied to the token embedding.
// Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of layer l; 2L + 1 head.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/model.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/head.h"
#include "models/units/mlp.h"

namespace concertina {
namespace {

constexpr float kStd = 0.02F;

class Gpt final : public Model {
 public:
  explicit Gpt(const ModelConfig& config) : config_(config), spec_(model_spec(config)) {
    const UnitShape shape = unit_shape(config);
    // Two projections a layer feed the skip: their sum keeps its variance (GPT-2, section 2.3).
    const auto residual_std =
        static_cast<float>(kStd / std::sqrt(2.0 * static_cast<double>(config.layers)));
    spec_.units.push_back(embedding_spec(name("embedding"), shape, config.vocab, kStd));
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      spec_.units.push_back(
          attention_spec(name("attention"), shape, config.heads, kStd, residual_std));
      spec_.units.push_back(mlp_spec(name("mlp"), shape, kStd, residual_std));
      spec_.layer_ends.push_back(static_cast<int>(spec_.units.size()));
    }
    spec_.units.push_back(head_spec(name("head"), shape, config.vocab, kStd));
  }

  const ModelSpec& spec() const override { return spec_; }

  std::unique_ptr<Unit> make_unit(int index, Backend& backend) const override {
    const UnitShape shape = unit_shape(config_);
    if (index == 0) return make_embedding(shape, backend);
    if (index == 2 * config_.layers + 1) return make_head(shape, config_.vocab, backend);
    CONCERTINA_CHECK(index > 0 && index <= 2 * config_.layers, "unit {}", index);
    if (index % 2 == 1) return make_attention(shape, config_.heads, backend);
    return make_mlp(shape, backend);
  }

 private:
  /// "003.mlp": the width of the number makes names sort in unit order.
  std::string name(const char* kind) const {
    const std::size_t digits =
        std::max<std::size_t>(3, std::to_string(2 * config_.layers + 1).size());
    return fmt::format("{:0{}}.{}", spec_.units.size(), digits, kind);
  }

  ModelConfig config_;
  ModelSpec spec_;
};

}  // namespace

namespace families {

std::unique_ptr<Model> gpt(const ModelConfig& config) {
  check_sizes(config);
  return std::make_unique<Gpt>(config);
}

}  // namespace families
}  // namespace concertina
