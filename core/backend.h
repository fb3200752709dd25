// The kernel interface that every backend implements (CPU, CUDA).
// Invariants: calls are ordered on the backend's stream; every size is explicit; nothing allocates
// after the operators are made and the workspace is set; no kernel splits a reduction by thread,
// so the number of threads never changes a bit.
//
// Legend: R rows (= microbatch samples x T), T tokens a sample, C width, H heads, D = C/H,
// V vocabulary, I inputs and O outputs of a linear map. All matrices are row-major.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/adamw.h"
#include "core/dropout.h"
#include "core/kernel_clock.h"
#include "core/memory.h"
#include "core/precision.h"
#include "core/tensor.h"

namespace concertina {

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

/// A linear map with weights packed once per step into the layout that the product wants.
class Linear {
 public:
  virtual ~Linear() = default;
  /// Bytes that hold the packed weights for both directions.
  virtual std::size_t packed_bytes() const = 0;
  /// Packs `weight`; the packed bytes stay valid until the next call.
  virtual void pack(View weight, void* packed) = 0;
  /// y[R,O] = epilogue(x[R,I] W + bias[O]); bias may be empty.
  virtual void forward(View x, const void* packed, View bias, Epilogue epilogue, View y) = 0;
  /// dx[R,I] = epilogue(dy[R,O] W^T).
  virtual void backward_input(View dy, const void* packed, Epilogue epilogue, View dx) = 0;
  /// dweight (shape of the stored weight) and dbias[O] (may be empty) = (accumulate ? old : 0)
  /// + x^T dy and column sums of dy.
  virtual void backward_weight(View x, View dy, View dweight, View dbias, bool accumulate) = 0;
};

/// Causal self-attention over qkv[R,3C] (q, k, v side by side, heads contiguous inside each).
struct AttentionShape {
  std::int64_t samples = 0, tokens = 0, heads = 0, head_dim = 0;
  DType compute = DType::f32;
  bool operator==(const AttentionShape&) const = default;
};

class Attention {
 public:
  virtual ~Attention() = default;
  /// y[R,C] = softmax(mask(q k^T / sqrt(D))) v; lse[samples,H,T] keeps log-sum-exp of each row.
  virtual void forward(View qkv, View y, View lse) = 0;
  /// dqkv[R,3C] from dy[R,C], recomputing the probabilities from qkv and lse (FlashAttention,
  /// Dao et al. 2022, algorithm 4).
  virtual void backward(View dy, View qkv, View y, View lse, View dqkv) = 0;
};

/// Kernels that a step issues again and again: one pass of one unit. Nothing else happens in it.
struct RepeatedPass {
  std::string_view unit;  // for errors, like `pass`
  std::string_view pass;
  /// Equal words: the same kernels with the same arguments, but for the step and sample of
  /// dropout's masks, which are those of `random`.
  std::span<const std::uint64_t> key;
  RandomAt random;
};

/// Since a backend was made.
struct PassCounts {
  std::int64_t issued = 0;    // kernel by kernel
  std::int64_t replayed = 0;  // from a recording
  std::int64_t recordings = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// For the log and doctor: name, threads, instruction set, library versions.
  virtual std::string describe() const = 0;
  /// Throws Error{bad_input} that names what is lacking if `precision` cannot run here.
  virtual void require(const Precision& precision) const = 0;
  /// Whether products in `compute` give its results but are done in another type, without its
  /// speed.
  virtual bool emulates(DType compute) const = 0;

  // Operators, made before the first step; each may raise workspace_bytes().
  virtual std::unique_ptr<Linear> linear(const LinearShape& shape) = 0;
  virtual std::unique_ptr<Attention> attention(const AttentionShape& shape) = 0;
  /// Scratch that the operators made so far share.
  virtual std::size_t workspace_bytes() const = 0;
  virtual void set_workspace(void* workspace) = 0;
  /// All operators made so far are gone: workspace_bytes() and the room of clock() start anew.
  virtual void forget_operators() = 0;

  /// y[R,C] = (x - mean) rstd gamma + beta, statistics kept in mean[R], rstd[R]; eps = 1e-5.
  virtual void layer_norm(View x, View gamma, View beta, View y, View mean, View rstd) = 0;
  /// dx[R,C] = residual_grad[R,C] + d layer_norm / dx applied to dy[R,C]. residual_grad may be
  /// empty (then 0), and dx may be residual_grad or dy itself.
  virtual void layer_norm_backward_input(View dy, View x, View gamma, View mean, View rstd,
                                         View residual_grad, View dx) = 0;
  /// dgamma[C], dbeta[C] = (accumulate ? old : 0) + sums over rows.
  virtual void layer_norm_backward_weight(View dy, View x, View mean, View rstd, View dgamma,
                                          View dbeta, bool accumulate) = 0;

  /// x[R,C] = wte[token] + wpe[position]; tokens[R] int32 in [0, V), R = samples x T.
  virtual void embedding(View tokens, View wte, View wpe, std::int64_t t, View x) = 0;
  /// dwte[V,C], dwpe[T,C] = (accumulate ? old : 0) + sums of dx[R,C] over rows, in row order.
  virtual void embedding_backward(View tokens, View dx, std::int64_t t, View dwte, View dwpe,
                                  bool accumulate) = 0;

  /// Softmax cross-entropy of logits[R,V] at targets[R] (int32; < 0 is ignored). row_loss[R] gets
  /// -log p(target), 0 where ignored. If `training`, logits become their own gradient times
  /// loss_scale (rows that are ignored become 0); else they stay.
  virtual void cross_entropy(View logits, View targets, float loss_scale, bool training,
                             View row_loss) = 0;

  /// y[R,C] = residual[R,C] + what `mask` keeps of u[R,C], scaled; the others become 0. residual
  /// may be empty (then 0), and y may be u. Also its own gradient: u is dy then.
  virtual void dropout(const DropoutMask& mask, View u, View residual, View y) = 0;

  /// y = a x + b y.
  virtual void axpby(float a, View x, float b, View y) = 0;
  /// fp64 sums of squares, each of `block` elements of x (the last of fewer), by synchronize().
  virtual void sum_squares(View x, std::size_t block, std::span<double> sums) = 0;
  /// One AdamW update of w with moments m, v and gradient g (equal counts).
  virtual void adamw(const AdamW& rule, View w, View m, View v, View g) = 0;

  /// Calls `issue`, which issues the kernels of `pass`, or replays the recording that was made
  /// under an equal key.
  virtual void repeat(const RepeatedPass& /*pass*/, const std::function<void()>& issue) { issue(); }
  /// Keys get new meanings: units or their memory change.
  virtual void forget_passes() {}
  virtual PassCounts pass_counts() const { return {}; }

  /// Where its tensors are.
  virtual Memory& memory() = 0;
  /// When its kernels run.
  virtual KernelClock& clock() = 0;

  /// All work issued so far is done (host code may read and write the buffers).
  virtual void synchronize() = 0;
};

/// The CPU backend: oneDNN products, fused loops, `threads` threads a rank. `isa` picks the loops'
/// instruction set (baseline, avx2, avx512, avx512_bf16); empty: the best that this machine has.
/// Products of bf16 are emulated but with avx512 and a processor that has them.
std::unique_ptr<Backend> make_cpu_backend(int threads, std::string_view isa = {});

}  // namespace concertina
