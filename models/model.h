// A model family: its description (ModelSpec) and its executable units.
// Invariant: the description is a pure function of ModelConfig; units add only a backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_spec.h"
#include "core/options.h"
#include "core/registry.h"
#include "models/units/unit.h"

namespace concertina {

/// Writes elements [begin, begin + out.size()) of `bucket`; padding becomes zero. Philox counter:
/// (high word of the index, tensor's parameter index, tensor's first unit, low word).
void initialize(const Bucket& bucket, std::uint64_t seed, std::size_t begin, std::span<float> out);

/// The keys of [model], and what a microbatch holds.
struct ModelConfig {
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t context = 0;  // tokens a sample
  std::int64_t vocab = 0;
  std::int64_t samples = 1;  // of one microbatch
  Precision precision = {};
  double dropout = 0;                    // share of activations, [0, 1)
  double attention_dropout = 0;          // share of attention's probabilities, [0, 1)
  double label_smoothing = 0;            // share of a target, [0, 1)
  std::vector<std::string> recompute{};  // see choose_recompute()
  std::string task = "auto";             // of tasks() (models/task.h); auto: the family's usual one
  std::int64_t classes = 2;              // of classification
  std::int64_t targets = 0;              // of a sample, at most; 0: any row may have one
  bool unties = false;                   // ModelSpec::unties
  double init_std = 0.02;                // of the initial weights
  std::vector<std::string> untrained{};  // see freeze_tensors()
  bool packed = false;                   // samples are of several documents (starts_field())
  OptionValues options{};                // of the family; make_model() adds those left out
};

class Model {
 public:
  const ModelSpec& spec() const { return spec_; }
  /// Unit `index` of spec().units; the backend must outlive it.
  std::unique_ptr<Unit> make_unit(int index, Backend& backend) const;
  /// Inference from a batch of samples to the logits. `untied`: the first unit has tables of its
  /// own in place of shared ones, as make_buckets() names them. Throws Error{bad_input} where a
  /// unit has no description.
  Graph describe(bool untied = false) const;

 private:
  friend class ModelPlan;
  ModelSpec spec_;
  std::vector<std::function<std::unique_ptr<Unit>(Backend&)>> makers_;
  std::vector<UnitGraph> describers_;
};

/// The units of a model, as its family adds them one after the other.
class ModelPlan {
 public:
  explicit ModelPlan(ModelConfig config);

  /// `kind` ends the unit's name: "003.mlp", numbered so that names sort in unit order.
  void add(std::string_view kind, UnitPlan unit);
  /// The units added so far and since the last layer are a layer (ModelSpec::layer_ends).
  void end_layer();
  std::unique_ptr<Model> build() &&;

 private:
  ModelConfig config_;
  Model model_;
};

struct Family {
  std::unique_ptr<Model> (*make)(const ModelConfig&);
  std::string_view usual_task = "causal-lm";
  /// Its knobs: the config keys model.<family>.<name>.
  std::vector<Option> options{};
};

/// The families that models/meson.build lists.
std::span<const Entry<Family>> models();

/// Throws Error{bad_input} for an unknown family or an impossible config, with the config key.
std::unique_ptr<Model> make_model(std::string_view family, const ModelConfig& config);

/// Throws Error{bad_input} unless sizes are positive and small enough to count in, and heads divide
/// the width, as a family demands that has no other size for them.
void check_sizes(const ModelConfig& config, bool heads_divide = true);

/// The standard deviation of weights that feed the skip, two per layer: their sum keeps the
/// variance of `std` (GPT-2, section 2.3).
float residual_std_of(const ModelConfig& config, float std);

/// Columns within a gated MLP: 8/3 C, as many parameters as an MLP of 4 C has, to the next multiple
/// of 32.
std::int64_t gated_hidden(std::int64_t width);

/// The shape that all units of `config` share.
UnitShape unit_shape(const ModelConfig& config);

}  // namespace concertina
