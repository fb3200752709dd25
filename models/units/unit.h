// An executable unit: the smallest run of layers that a stage boundary may cut.
// Invariants: a unit owns no memory; F writes only `output` and `saved`, I only `input_grad` and
// `grads` (and `saved` not at all), W only the gradients; W reads what F and I left.
//
// Legend of models/: R rows (= samples x T), T tokens a sample, C width, H heads, V vocabulary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/backend.h"
#include "core/error.h"
#include "core/model/graph.h"
#include "core/model/model_spec.h"
#include "core/tensor.h"

namespace concertina {

/// The dimensions that all units of a model share.
struct UnitShape {
  std::int64_t samples = 0, tokens = 0, width = 0;
  DType compute = DType::f32;  // as in core/backend.h
  Products products = Products::as_stored;
  double dropout = 0;            // share, see models/units/dropout.h
  double smoothing = 0;          // of the targets of a training loss, see CrossEntropy
  double attention_dropout = 0;  // share of attention's probabilities
  bool packed = false;           // samples are of several documents, told apart by starts_field()

  std::int64_t rows() const { return samples * tokens; }
  /// Elements of [R,nC].
  std::int64_t elements(std::int64_t n) const { return rows() * n * width; }
  /// Bytes of an activation [R,C].
  std::size_t activation_bytes() const {
    return static_cast<std::size_t>(elements(1)) * size_of(compute);
  }
  /// Bytes of reading or writing so many columns of all rows.
  double moved(std::int64_t columns) const {
    return static_cast<double>(rows() * columns) * static_cast<double>(size_of(compute));
  }
  /// The shape of a linear map of all rows.
  LinearShape linear(std::int64_t in, std::int64_t out) const {
    return {rows(), in, out, false, compute, products};
  }
};

/// Bytes that a unit needs: a microbatch each, but packed weights once.
struct UnitMemory {
  std::size_t saved_bytes = 0;  // F -> I and W
  std::size_t grad_bytes = 0;   // I -> W
  std::size_t packed_bytes = 0;
};

/// One microbatch as one unit sees it. Views that a unit has no use for are empty.
struct UnitIo {
  std::array<View, kMostReads> fields;  // UnitSpec::reads, in this order, of all R rows
  View input, output;                   // [R,C]
  View input_grad, output_grad;         // [R,C], distinct; input_grad is empty where none is wanted
  void* saved = nullptr;
  void* grads = nullptr;
  float loss_scale = 1;
  bool training = true;  // false: no gradient of this unit follows
  RandomAt random;       // where it trains
};

/// Where one parameter's gradient goes: added to what is there, or in its place. Empty where a
/// shared tensor is frozen: no gradient is wanted.
struct UnitGradient {
  View view;
  bool accumulate = false;
};

/// The results that a unit that ends a model leaves in `saved`; empty views at any other unit.
struct UnitResult {
  View row_loss;  // [R], fp32
  View logits;    // [R,V]; their own gradient after a training forward
};

class Unit {
 public:
  virtual ~Unit() = default;
  virtual UnitMemory memory() const = 0;
  /// `parameters` in the order of UnitSpec::parameters; `packed` has memory().packed_bytes.
  virtual void attach(std::span<const View> parameters, void* packed) = 0;
  /// The weights changed: packs them for the products.
  virtual void pack() = 0;
  /// Whether pack() reads this parameter.
  virtual bool packs(std::size_t parameter) const = 0;

  virtual void forward(const UnitIo& io) = 0;
  /// Writes `saved` once more as forward() did, but not `output`; `grads` is scratch. Only of units
  /// whose UnitCost::again_flops is not 0.
  virtual void recompute(const UnitIo& /*io*/) {
    CONCERTINA_CHECK(false, "a unit that cannot compute again what it keeps");
  }
  virtual void backward_input(const UnitIo& io) = 0;
  /// `gradients` in the order of UnitSpec::parameters.
  virtual void backward_weight(const UnitIo& io, std::span<const UnitGradient> gradients) = 0;
  virtual UnitResult result(void* /*saved*/) const { return {}; }
};

/// Describes inference, without dropout and loss: adds what makes y [samples,T,C] of `x` (of a unit
/// that ends a model: its outputs, and no y), and returns the name of y. A unit that begins a model
/// adds the inputs that it reads; its `x` is empty.
using UnitGraph = std::function<std::string(GraphBuilder& graph, const std::string& x)>;

inline void append(std::vector<ParameterSpec>& all, const std::vector<ParameterSpec>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// A unit without a backend, and how to make it on one.
struct UnitPlan {
  UnitSpec spec;  // but for its name
  std::function<std::unique_ptr<Unit>(Backend&)> make;
  UnitGraph describe{};  // empty: nothing but training knows this unit
};

}  // namespace concertina
