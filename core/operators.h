// Operators: kernels that are prepared for one shape before the first step, because a library plans
// them or they need scratch.
// Invariant: calls are those of one backend's stream; nothing allocates after the workspace is set.
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

/// The operation that is fused after a product. Forward: an activation writes y = f(u) and what its
/// gradient needs into aux[R,O]; `residual` writes y = residual[R,O] + u. Backward: an activation
/// multiplies dx[R,I] by the derivative, from what the map that produced this one's input kept in
/// aux[R,I]; `residual` adds residual[R,I] to dx.
/// `gelu` is the tanh form (GPT-2), `gelu_erf` x Phi(x) (BERT, ViT; Hendrycks & Gimpel 2016),
/// `silu` x sigmoid(x) (Elfwing et al. 2018), `relu` max(x, 0), whose derivative at 0 is 0.
struct Epilogue {
  enum class Kind { none, gelu, gelu_erf, relu, silu, residual } kind = Kind::none;
  bool is_activation() const { return kind != Kind::none && kind != Kind::residual; }
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

/// Self-attention over qkv[R,(H+2K)D]: the columns of H query heads, then those of K key heads,
/// then those of K value heads. H/K neighbouring query heads share one key and value head
/// (grouped-query attention, Ainslie et al. 2023).
struct AttentionShape {
  std::int64_t samples = 0, tokens = 0, heads = 0, head_dim = 0;
  DType compute = DType::f32;
  std::int64_t kv_heads = 0;  // K, a divisor of H; 0: H
  bool causal = true;         // query i sees keys [0, i]; else all
  bool padded = false;        // every op gives lengths; else none does
  bool drops = false;         // ops may have a mask; else none does
  bool packed = false;        // causal, and every op gives starts; else none does
  bool operator==(const AttentionShape&) const = default;

  std::int64_t kv() const { return kv_heads == 0 ? heads : kv_heads; }
  std::int64_t group() const { return heads / kv(); }
  /// Columns of q, y; of k or v; of qkv.
  std::int64_t width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv() * head_dim; }
  std::int64_t qkv_width() const { return width() + 2 * kv_width(); }
  /// Elements of dropout's mask: key j of query i in head h is (h T + i) mask_row() + j. A row
  /// starts at a counter.
  std::int64_t mask_row() const { return (tokens + 3) / 4 * 4; }
  std::int64_t mask_elements() const { return heads * tokens * mask_row(); }
};

/// Operations of one product over the pairs (query, key) that the mask leaves, lengths aside. The
/// forward pass has two (q k^T, p v), the backward pass five (q k^T again, dp, dv, dq, dk).
double attention_product_flops(const AttentionShape& shape);

class Attention {
 public:
  /// Throws where heads cannot be shared evenly.
  explicit Attention(const AttentionShape& shape);
  virtual ~Attention() = default;
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  const AttentionShape& shape() const { return shape_; }
  virtual void forward(const AttentionForward& op) = 0;
  virtual void backward(const AttentionBackward& op) = 0;

 protected:
  /// Throws where an op's lengths, mask or starts are not what the shape promises.
  void require(View lengths, const DropoutMask& mask, View starts) const;

 private:
  AttentionShape shape_;
};

}  // namespace concertina
