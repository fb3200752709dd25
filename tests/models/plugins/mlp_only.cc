// A model without attention: embedding, one MLP half-block a layer, tied head.
#include <fmt/format.h>

#include "models/model.h"
#include "models/units/embedding.h"
#include "models/units/head.h"
#include "models/units/mlp.h"

namespace concertina::families {
namespace {

class MlpOnly final : public Model {
 public:
  explicit MlpOnly(const ModelConfig& config) : config_(config), spec_(model_spec(config)) {
    const UnitShape shape = unit_shape(config);
    spec_.units.push_back(embedding_spec("000.embedding", shape, config.vocab, 0.1F));
    for (std::int64_t layer = 1; layer <= config.layers; ++layer)
      spec_.units.push_back(mlp_spec(fmt::format("{:03}.mlp", layer), shape, 0.1F, 0.1F));
    spec_.units.push_back(
        head_spec(fmt::format("{:03}.head", config.layers + 1), shape, config.vocab, 0.1F));
  }

  const ModelSpec& spec() const override { return spec_; }

  std::unique_ptr<Unit> make_unit(int index, Backend& backend) const override {
    const UnitShape shape = unit_shape(config_);
    if (index == 0) return make_embedding(shape, backend);
    if (index == config_.layers + 1) return make_head(shape, config_.vocab, backend);
    return make_mlp(shape, backend);
  }

 private:
  ModelConfig config_;
  ModelSpec spec_;
};

}  // namespace

std::unique_ptr<Model> mlp_only(const ModelConfig& config) {
  check_sizes(config);
  return std::make_unique<MlpOnly>(config);
}

}  // namespace concertina::families
