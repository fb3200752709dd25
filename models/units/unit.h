// An executable unit: the smallest part of a model that can be a stage.
// Invariants: a unit owns no memory. F writes only `output`, `saved` and `cache`; I writes only
// `input_grad` and `grads`; W writes only gradients, and reads what F and I wrote.
//
// Dimensions: R rows (= samples x T), T tokens per sample, C width, H heads, V vocabulary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "core/model/graph.h"
#include "core/model/model_spec.h"
#include "core/tensor.h"

namespace concertina {

/// A low-rank adapter of one linear map (models/units/adapter.h). Rank 0: none.
struct AdapterSpec {
  std::int64_t rank = 0;
  float scale = 1;
};

/// The adapters of a model: those of the maps named in `targets`.
struct LoraSpec {
  AdapterSpec adapter{};
  std::vector<std::string> targets{};
  AdapterSpec of(std::string_view map) const;
  /// Returns the elements of scratch for the weight gradient of one of `maps` at a time.
  std::int64_t scratch(std::initializer_list<std::string_view> maps, std::int64_t rows) const;
};

/// How a model learns from a teacher's logits, besides its targets (Distillation in core/ops.h).
struct DistillationSpec {
  double share = 0;  // of the loss; 0: no teacher
  double temperature = 1;
};

/// The dimensions that all units of a model share.
struct UnitShape {
  std::int64_t samples = 0, tokens = 0, width = 0;
  DType compute = DType::f32;  // as in core/backend.h
  Products products = Products::as_stored;
  double dropout = 0;            // fraction, see models/units/dropout.h
  double smoothing = 0;          // label smoothing in training, see CrossEntropy
  double attention_dropout = 0;  // dropped fraction of attention probabilities
  bool packed = false;           // a sample may contain several documents, see starts_field()
  LoraSpec lora{};
  /// > 0: inference on the next `tokens` tokens of samples of up to this many, whose keys and
  /// values are in UnitIo::cache (AttentionShape::capacity). Otherwise, a sample has `tokens`
  /// tokens.
  std::int64_t capacity = 0;
  DistillationSpec distillation{};

  std::int64_t rows() const { return samples * tokens; }
  std::int64_t positions() const { return capacity > 0 ? capacity : tokens; }
  /// Whether units that depend on positions read starts_field().
  bool has_starts() const { return packed || capacity > 0; }
  /// Returns the number of elements of [R,nC].
  std::int64_t elements(std::int64_t n) const { return rows() * n * width; }
  /// Returns the size of an activation [R,C] in bytes.
  std::size_t activation_bytes() const {
    return static_cast<std::size_t>(elements(1)) * size_of(compute);
  }
  /// Returns the number of bytes moved to read or write `columns` columns of all rows.
  double moved(std::int64_t columns) const {
    return static_cast<double>(rows() * columns) * static_cast<double>(size_of(compute));
  }
};

/// Bytes that a unit needs: per microbatch, except for packed weights.
struct UnitMemory {
  std::size_t saved_bytes = 0;  // F -> I and W
  std::size_t grad_bytes = 0;   // I -> W
  std::size_t packed_bytes = 0;
  std::size_t pack_scratch = 0;  // during pack()
  std::size_t cache_bytes = 0;   // from F to the next F, see UnitShape::capacity
};

/// A microbatch as seen by one unit. Views that the unit does not use are empty.
struct UnitIo {
  std::array<View, kMostReads> fields;  // all R rows, in the order of UnitSpec::reads
  View input, output;                   // [R,C]
  View input_grad, output_grad;         // [R,C], distinct; an empty input_grad is not computed
  void* saved = nullptr;
  void* grads = nullptr;
  void* cache = nullptr;
  float loss_scale = 1;
  bool training = true;  // false: inference, or a frozen unit
  RandomAt random;       // set in training
};

/// Destination of a parameter's gradient, which is either added to it or replaces it. Empty for a
/// frozen shared tensor, which needs no gradient.
struct UnitGradient {
  View view;
  bool accumulate = false;
};

/// What the last unit of a model leaves in `saved`; empty views for any other unit.
struct UnitResult {
  View row_loss;  // [R], fp32
  View logits;    // [R,V]; replaced with their gradient in training
};

class Unit {
 public:
  virtual ~Unit() = default;
  virtual UnitMemory memory() const = 0;
  /// `parameters` are in the order of UnitSpec::parameters; `packed` is memory().packed_bytes.
  virtual void attach(std::span<const View> parameters, void* packed) = 0;
  /// Packs the weights for the products. Must be called when the weights have changed. `scratch` is
  /// memory().pack_scratch.
  virtual void pack(void* scratch) = 0;
  /// Whether pack() reads this parameter.
  virtual bool packs(std::size_t parameter) const = 0;

  virtual void forward(const UnitIo& io) = 0;
  /// Writes the same `saved` as forward(), but not `output`; `grads` is scratch. Only for units
  /// whose UnitCost::recompute_flops is not 0.
  virtual void recompute(const UnitIo& /*io*/) {
    CONCERTINA_CHECK(false, "this unit does not support recomputation");
  }
  virtual void backward_input(const UnitIo& io) = 0;
  /// `gradients` are in the order of UnitSpec::parameters.
  virtual void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) = 0;
  virtual UnitResult result(void* /*saved*/) const { return {}; }
};

/// Describes inference, without dropout or loss: adds the operators from `x` to y [samples,T,C],
/// and returns the name of y. The last unit of a model adds its outputs and returns no y. The first
/// unit adds the inputs that it reads; its `x` is empty.
using UnitGraph = std::function<std::string(GraphBuilder& graph, const std::string& x)>;

inline void append(std::vector<ParameterSpec>& all, const std::vector<ParameterSpec>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// A unit without a backend, and the function that makes it on one.
struct UnitPlan {
  UnitSpec spec;  // without its name
  std::function<std::unique_ptr<Unit>(Backend&)> make;
  UnitGraph describe{};  // empty: the unit cannot be exported
};

}  // namespace concertina
