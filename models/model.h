// A model family: its description (ModelSpec) and its executable units.
// Invariant: the description is a pure function of ModelConfig. Only units need a backend.
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

/// Writes elements [begin, begin + out.size()) of `bucket`, with zeros as padding. Philox counter:
/// (high word of the index, tensor's parameter index, tensor's first unit, low word).
void initialize(const Bucket& bucket, std::uint64_t seed, std::size_t begin, std::span<float> out);

/// The keys of [model], and the shape of a microbatch.
struct ModelConfig {
  std::int64_t layers = 0, width = 0, heads = 0;
  std::int64_t context = 0;  // tokens per sample
  std::int64_t vocab = 0;
  std::int64_t samples = 1;  // per microbatch
  Precision precision = {};
  double dropout = 0;                    // dropped fraction of activations, [0, 1)
  double attention_dropout = 0;          // dropped fraction of attention probabilities, [0, 1)
  double label_smoothing = 0;            // in [0, 1)
  std::vector<std::string> recompute{};  // see choose_recompute()
  std::string task = "auto";  // a name in tasks() (models/task.h); auto: the family's default
  std::int64_t classes = 2;   // number of classes (classification)
  std::int64_t targets = 0;   // maximum number per sample; 0: no limit
  bool unties = false;        // see ModelSpec::unties
  double init_std = 0.02;     // standard deviation of the initial weights
  std::vector<std::string> untrained{};  // see freeze_tensors()
  bool packed = false;                   // a sample may contain several documents (starts_field())
  LoraSpec lora{};                       // adapters; rank 0: none
  DistillationSpec distillation{};       // of the head
  std::int64_t decoded = 0;  // > 0: a decoder, which reads this many tokens of each sample per pass
  OptionValues options{};    // family options; make_model() adds omitted ones
};

class Model {
 public:
  const ModelSpec& spec() const { return spec_; }
  /// Makes unit `index` of spec().units. The backend must outlive it.
  std::unique_ptr<Unit> make_unit(int index, Backend& backend) const;
  /// Describes inference from a batch of samples to the logits. If `untied`, the first unit has
  /// private tables instead of shared ones, named as in make_buckets(). Throws Error{bad_input} if
  /// a unit has no description.
  Graph describe(bool untied = false) const;

 private:
  friend class ModelPlan;
  ModelSpec spec_;
  std::vector<std::function<std::unique_ptr<Unit>(Backend&)>> makers_;
  std::vector<UnitGraph> describers_;
};

/// The units of a model, in the order in which its family adds them.
class ModelPlan {
 public:
  explicit ModelPlan(ModelConfig config);

  /// Adds a unit. Its name is its number and `kind`, "003.mlp", so names sort in unit order.
  void add(std::string_view kind, UnitPlan unit);
  /// Ends a layer, i.e. the units added since the previous layer (ModelSpec::layer_ends).
  void end_layer();
  std::unique_ptr<Model> build() &&;

 private:
  ModelConfig config_;
  Model model_;
};

struct Family {
  std::unique_ptr<Model> (*make)(const ModelConfig&);
  std::string_view default_task = "causal-lm";
  /// The config keys `model.<family>.<name>`.
  std::vector<Option> options{};
};

/// Returns the families listed in models/meson.build.
std::span<const Entry<Family>> models();

/// Throws Error{bad_input}, naming the config key, for an unknown family or an invalid config.
std::unique_ptr<Model> make_model(std::string_view family, const ModelConfig& config);

/// Throws Error{bad_input} unless a microbatch has samples, products of the sizes do not overflow
/// and, if `heads_divide`, the number of heads divides the width. The sizes are in the ranges of
/// their keys.
void check_sizes(const ModelConfig& config, bool heads_divide = true);

/// Returns the standard deviation of weights that feed the skip connection: `std` divided by the
/// square root of the number of such maps, two per layer (GPT-2, section 2.3).
float residual_std_of(const ModelConfig& config, float std);

/// Returns the hidden size of a gated MLP: 8/3 C, which has as many parameters as a plain MLP with
/// 4 C, rounded up to a multiple of 32.
std::int64_t gated_hidden(std::int64_t width);

/// Returns the shape that all units of `config` share.
UnitShape unit_shape(const ModelConfig& config);

}  // namespace concertina
