// The kernels, as values: one struct per kernel, which names what it reads and writes. All of them
// pass through one door, Backend::run(), where they can be counted, timed and moved.
// Invariants: an op owns nothing; what it points to outlives the kernel. Every size follows from
// the views and numbers in it.
//
// Legend: R rows (= microbatch samples x T), T tokens a sample, C width, H heads, D = C/H,
// V vocabulary, I inputs and O outputs of a linear map. All matrices are row-major.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/adamw.h"
#include "core/dropout.h"
#include "core/operators.h"
#include "core/tensor.h"

namespace concertina {

/// An op that a Linear or an Attention does: it knows which.
template <class T>
concept OperatorOp = requires(const T& op) {
  op.run();
};

/// Packs the stored weight of a linear map; the packed bytes stay valid until the next time.
struct PackWeights {
  static constexpr std::string_view kName = "pack weights";
  Linear& map;
  View weight;
  void* packed;
  auto views() { return std::array{&weight}; }
  void run() const { map.pack(*this); }
};

/// y[R,O] = epilogue(x[R,I] W + bias[O]); bias may be empty.
struct LinearForward {
  static constexpr std::string_view kName = "linear forward";
  Linear& map;
  View x;
  const void* packed;
  View bias{};
  Epilogue epilogue{};
  View y;
  auto views() { return std::array{&x, &bias, &epilogue.operand, &y}; }
  void run() const { map.forward(*this); }
};

/// dx[R,I] = epilogue(dy[R,O] W^T).
struct LinearInput {
  static constexpr std::string_view kName = "linear input gradient";
  Linear& map;
  View dy;
  const void* packed;
  Epilogue epilogue{};
  View dx;
  auto views() { return std::array{&dy, &epilogue.operand, &dx}; }
  void run() const { map.backward_input(*this); }
};

/// dweight (shape of the stored weight) and dbias[O] (may be empty) = (accumulate ? old : 0)
/// + x^T dy and column sums of dy.
struct LinearWeight {
  static constexpr std::string_view kName = "linear weight gradient";
  Linear& map;
  View x, dy;
  View dweight, dbias{};
  bool accumulate;
  auto views() { return std::array{&x, &dy, &dweight, &dbias}; }
  void run() const { map.backward_weight(*this); }
};

/// y[R,C] = softmax(mask(q k^T / sqrt(D))) v; lse[samples,H,T] keeps log-sum-exp of each row.
struct AttentionForward {
  static constexpr std::string_view kName = "attention forward";
  Attention& attention;
  View qkv;  // [R,3C]: q, k, v side by side, heads contiguous inside each
  View y, lse;
  auto views() { return std::array{&qkv, &y, &lse}; }
  void run() const { attention.forward(*this); }
};

/// dqkv[R,3C] from dy[R,C], recomputing the probabilities from qkv and lse (FlashAttention, Dao et
/// al. 2022, algorithm 4).
struct AttentionBackward {
  static constexpr std::string_view kName = "attention backward";
  Attention& attention;
  View dy, qkv, y, lse;
  View dqkv;
  auto views() { return std::array{&dy, &qkv, &y, &lse, &dqkv}; }
  void run() const { attention.backward(*this); }
};

/// y[R,C] = (x - mean) rstd gamma + beta, statistics kept in mean[R], rstd[R]; eps = 1e-5.
struct LayerNorm {
  static constexpr std::string_view kName = "layer norm";
  View x, gamma, beta;
  View y, mean, rstd;
  auto views() { return std::array{&x, &gamma, &beta, &y, &mean, &rstd}; }
};

/// dx[R,C] = residual_grad[R,C] + d layer_norm / dx applied to dy[R,C]. residual_grad may be empty
/// (then 0), and dx may be residual_grad or dy itself.
struct LayerNormInput {
  static constexpr std::string_view kName = "layer norm input gradient";
  View dy, x, gamma, mean, rstd, residual_grad{};
  View dx;
  auto views() { return std::array{&dy, &x, &gamma, &mean, &rstd, &residual_grad, &dx}; }
};

/// dgamma[C], dbeta[C] = (accumulate ? old : 0) + sums over rows.
struct LayerNormWeight {
  static constexpr std::string_view kName = "layer norm weight gradient";
  View dy, x, mean, rstd;
  View dgamma, dbeta;
  bool accumulate;
  auto views() { return std::array{&dy, &x, &mean, &rstd, &dgamma, &dbeta}; }
};

/// x[R,C] = wte[token] + wpe[position]; tokens[R] int32 in [0, V), R = samples x T.
struct Embed {
  static constexpr std::string_view kName = "embedding";
  View tokens, wte, wpe;  // wpe[T,C]
  std::int64_t t;
  View x;
  auto views() { return std::array{&tokens, &wte, &wpe, &x}; }
};

/// dwte[V,C], dwpe[T,C] = (accumulate ? old : 0) + sums of dx[R,C] over rows, in row order.
struct EmbedWeight {
  static constexpr std::string_view kName = "embedding gradient";
  View tokens, dx;
  std::int64_t t;
  View dwte, dwpe;
  bool accumulate;
  auto views() { return std::array{&tokens, &dx, &dwte, &dwpe}; }
};

/// Softmax cross-entropy of logits[R,V] at targets[R] (int32; < 0 is ignored). row_loss[R] gets
/// -log p(target), 0 where ignored. If `training`, logits become their own gradient times
/// loss_scale (rows that are ignored become 0); else they stay.
struct CrossEntropy {
  static constexpr std::string_view kName = "cross entropy";
  View logits, targets;
  float loss_scale;
  bool training;
  View row_loss;
  auto views() { return std::array{&logits, &targets, &row_loss}; }
};

/// y[R,C] = residual[R,C] + what `mask` keeps of u[R,C], scaled; the others become 0. residual may
/// be empty (then 0), and y may be u. Also its own gradient: u is dy then.
struct ApplyDropout {
  static constexpr std::string_view kName = "dropout";
  DropoutMask mask;
  View u, residual{};
  View y;
  auto views() { return std::array{&u, &residual, &y}; }
};

/// y = a x + b y.
struct Axpby {
  static constexpr std::string_view kName = "gradient sums";
  float a;
  View x;
  float b;
  View y;
  auto views() { return std::array{&x, &y}; }
};

/// fp64 sums of squares, each of `block` elements of x (the last of fewer), by synchronize().
struct SumSquares {
  static constexpr std::string_view kName = "norm";
  View x;
  std::size_t block;
  std::span<double> sums;
  auto views() { return std::array{&x}; }
};

/// One AdamW update of w with moments m, v and gradient g (equal counts).
struct AdamWUpdate {
  static constexpr std::string_view kName = "adamw";
  AdamW rule;
  View w, m, v, g;
  auto views() { return std::array{&w, &m, &v, &g}; }
};

using Op = std::variant<PackWeights, LinearForward, LinearInput, LinearWeight, AttentionForward,
                        AttentionBackward, LayerNorm, LayerNormInput, LayerNormWeight, Embed,
                        EmbedWeight, CrossEntropy, ApplyDropout, Axpby, SumSquares, AdamWUpdate>;

/// The names of all kernels, by index in Op.
inline constexpr auto kOpNames = []<class... Ops>(std::type_identity<std::variant<Ops...>>) {
  return std::array{Ops::kName...};
}(std::type_identity<Op>{});

/// Every view of `op`, to read or to replace; empty ones too.
template <class F>
void each_view(Op& op, F&& f) {
  std::visit(
      [&](auto& kernel) {
        for (View* view : kernel.views()) f(*view);
      },
      op);
}

/// The operations of a product, as it is really computed; every other kernel counts 0.
double flops_of(const Op& op);

}  // namespace concertina
