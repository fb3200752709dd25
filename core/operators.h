// Operators: kernels that are prepared for one shape before the first step, because a library plans
// them or they need scratch.
// Invariant: calls run on the stream of one backend. Nothing allocates after the workspace is set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/precision.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace concertina {

struct PackWeights;
struct LinearForward;
struct LinearInput;
struct LinearWeight;
struct AttentionForward;
struct AttentionBackward;

// `compute` is the type of activations and their gradients, and of the operands of products unless
// a linear map's `products` says otherwise. Sums, statistics, softmax, parameters and their
// gradients are always fp32.

/// y[R,O] = x[R,I] W + b. W is stored as [I,O], or as [O,I] if `transposed` (a tied head).
struct LinearShape {
  std::int64_t rows = 0, in = 0, out = 0;
  bool transposed = false;
  DType compute = DType::f32;
  Products products = Products::as_stored;
  bool infers = false;  // only forward passes, for which alone the weights are packed
  bool operator==(const LinearShape&) const = default;
};

/// The operation that is fused with a product u. Forward: an activation writes y = f(u), and writes
/// what its gradient needs to aux[R,O]; `residual` writes y = residual[R,O] + u. Backward: an
/// activation multiplies dx[R,I] by its derivative, computed from the aux[R,I] of the map that
/// produced the input; `residual` adds residual[R,I] to dx.
/// `gelu` is the tanh form (GPT-2), `gelu_erf` is x Phi(x) (BERT, ViT; Hendrycks & Gimpel 2016),
/// `silu` is x sigmoid(x) (Elfwing et al. 2018), `relu` is max(x, 0) with derivative 0 at 0.
struct Epilogue {
  enum class Kind { none, gelu, gelu_erf, relu, silu, residual } kind = Kind::none;
  bool is_activation() const { return kind != Kind::none && kind != Kind::residual; }
  View operand{};  // aux (written forward, read backward) or residual (read)
};

/// A linear map whose weights are packed once per step into the layout of its products. Its ops
/// (core/ops.h) call it through Backend::run().
class Linear {
 public:
  explicit Linear(const LinearShape& shape) : shape_(shape) {}
  virtual ~Linear() = default;
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  const LinearShape& shape() const { return shape_; }
  /// Returns the bytes of the packed weights for both directions.
  virtual std::size_t packed_bytes() const = 0;

  virtual void pack(const PackWeights& op) = 0;
  virtual void forward(const LinearForward& op) = 0;
  virtual void backward_input(const LinearInput& op) = 0;
  virtual void backward_weight(const LinearWeight& op) = 0;

  /// Throws unless an op's `view`, called `name`, has this many columns. The op's run() calls it.
  void check(View view, std::int64_t columns, const char* name) const;

 private:
  LinearShape shape_;
};

/// Self-attention over qkv[R,(H+2K)D]: the columns of H query heads, then of K key heads, then of K
/// value heads. H/K consecutive query heads share one key and value head (grouped-query attention,
/// Ainslie et al. 2023).
struct AttentionShape {
  std::int64_t samples = 0, tokens = 0, heads = 0, head_dim = 0;
  DType compute = DType::f32;
  std::int64_t kv_heads = 0;  // K, a divisor of H; 0: H
  bool causal = true;         // query i sees keys [0, i]; otherwise all keys
  bool padded = false;        // every op has lengths; otherwise no op has them
  bool drops = false;         // ops may have a mask; otherwise no op has one
  bool packed = false;        // causal, and every op has starts; otherwise no op has them
  /// > 0: causal inference with a cache of this many tokens per sample. An op's rows are the next
  /// tokens of each sample: row r has the position r % T - starts[r] in its sample.
  std::int64_t capacity = 0;
  bool operator==(const AttentionShape&) const = default;

  std::int64_t kv() const { return kv_heads == 0 ? heads : kv_heads; }
  std::int64_t group() const { return heads / kv(); }
  /// Numbers of columns: in q and in y; in k and in v; in qkv.
  std::int64_t width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv() * head_dim; }
  std::int64_t qkv_width() const { return width() + 2 * kv_width(); }
  /// In the dropout mask, key j of query i in head h is element (h T + i) mask_row() + j, so that
  /// each row starts at a new counter of the random generator.
  std::int64_t mask_row() const { return (tokens + 3) / 4 * 4; }
  std::int64_t mask_elements() const { return heads * tokens * mask_row(); }
  /// Elements of the cache [samples,2K,capacity,D]: the keys of each key head, then the values.
  std::int64_t cache_elements() const { return samples * 2 * kv_width() * capacity; }
  bool has_starts() const { return packed || capacity > 0; }
};

/// Returns the FLOPs of one product over the unmasked (query, key) pairs, ignoring lengths and,
/// with a cache, for queries at all positions alike. Forward passes compute two products (q k^T, p
/// v), backward passes five (q k^T again, dp, dv, dq, dk).
double attention_product_flops(const AttentionShape& shape);

class Attention {
 public:
  /// Throws if heads cannot be shared evenly.
  explicit Attention(const AttentionShape& shape);
  virtual ~Attention() = default;
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  const AttentionShape& shape() const { return shape_; }
  virtual void forward(const AttentionForward& op) = 0;
  /// Throws, as attention with a cache has no backward pass.
  virtual void backward(const AttentionBackward& op);

  /// Throws if an op's lengths, mask, starts or cache do not match the shape. Its run() calls it.
  void require(View lengths, const DropoutMask& mask, View starts, View cache = {}) const;

 private:
  AttentionShape shape_;
};

}  // namespace concertina
