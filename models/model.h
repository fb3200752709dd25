// A model family: its description (ModelSpec) and its executable units.
// Invariant: the description is a pure function of ModelConfig; units add only a backend.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/model_spec.h"
#include "core/registry.h"
#include "models/unit.h"

namespace concertina {

/// The keys of [model], and what a microbatch holds.
struct ModelConfig {
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t context = 0;  // tokens a sample
  std::int64_t vocab = 0;
  std::int64_t samples = 1;  // of one microbatch
  Precision precision = {};
  double dropout = 0;  // share of activations, [0, 1)
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelSpec& spec() const = 0;
  /// Unit `index` of spec().units; the backend must outlive it.
  virtual std::unique_ptr<Unit> make_unit(int index, Backend& backend) const = 0;
};

using ModelFactory = std::unique_ptr<Model> (*)(const ModelConfig&);

/// The families that models/meson.build lists.
std::span<const Entry<ModelFactory>> models();

/// Throws Error{bad_input} for an unknown family or an impossible config, with the config key.
std::unique_ptr<Model> make_model(std::string_view family, const ModelConfig& config);

/// What every family demands: sizes positive and small enough to count in, heads dividing width.
void check_sizes(const ModelConfig& config);

/// The shape that all units of `config` share.
UnitShape unit_shape(const ModelConfig& config);

/// A ModelSpec without units: what follows from the config alone.
ModelSpec model_spec(const ModelConfig& config);

}  // namespace concertina
