// Operators: kernels that are prepared for one shape before the first step, because a library plans
// them or they need scratch.
// Invariant: calls are those of one backend's stream; nothing allocates after the workspace is set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/precision.h"
#include "core/tensor.h"

namespace concertina {

struct PackWeights;
struct LinearForward;
struct LinearInput;
struct LinearWeight;
struct AttentionForward;
struct AttentionBackward;

// `compute` is the type of all activations and their gradients, and of what products read, unless
// `products` of a linear map says otherwise; sums, statistics, softmax, parameters and their
// gradients are fp32 in any case.

/// y[R,O] = x[R,I] W + b. W is stored [I,O], or [O,I] if `transposed` (a tied head).
struct LinearShape {
  std::int64_t rows = 0, in = 0, out = 0;
  bool transposed = false;
  DType compute = DType::f32;
  Products products = Products::as_stored;
  bool operator==(const LinearShape&) const = default;
};

/// What is fused after the product. Forward: `gelu` writes y = gelu(u) and what its gradient needs
/// into aux[R,O]; `residual` writes y = residual[R,O] + u. Backward: `gelu` multiplies dx[R,I] by
/// the derivative, from what the map that produced this one's input kept in aux[R,I].
struct Epilogue {
  enum class Kind { none, gelu, residual } kind = Kind::none;
  View operand{};  // aux (written forward, read backward) or residual (read)
};

/// A linear map with weights packed once per step into the layout that the product wants. Its ops
/// (core/ops.h) reach it through Backend::run().
class Linear {
 public:
  explicit Linear(const LinearShape& shape) : shape_(shape) {}
  virtual ~Linear() = default;
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  const LinearShape& shape() const { return shape_; }
  /// Bytes that hold the packed weights for both directions.
  virtual std::size_t packed_bytes() const = 0;

  virtual void pack(const PackWeights& op) = 0;
  virtual void forward(const LinearForward& op) = 0;
  virtual void backward_input(const LinearInput& op) = 0;
  virtual void backward_weight(const LinearWeight& op) = 0;

 private:
  LinearShape shape_;
};

/// Causal self-attention over qkv[R,3C].
struct AttentionShape {
  std::int64_t samples = 0, tokens = 0, heads = 0, head_dim = 0;
  DType compute = DType::f32;
  bool operator==(const AttentionShape&) const = default;
};

class Attention {
 public:
  explicit Attention(const AttentionShape& shape) : shape_(shape) {}
  virtual ~Attention() = default;
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  const AttentionShape& shape() const { return shape_; }
  virtual void forward(const AttentionForward& op) = 0;
  virtual void backward(const AttentionBackward& op) = 0;

 private:
  AttentionShape shape_;
};

}  // namespace concertina
