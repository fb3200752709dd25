// The kernels, as values: one struct per kernel, which names what it reads and writes. All of them
// pass through one door, Backend::run(), where they can be counted, timed and moved.
// Invariants: an op owns nothing; what it points to outlives the kernel. Every size follows from
// the views and numbers in it.
//
// Legend: R rows (= microbatch samples x T), T tokens a sample, C width, H heads of D columns, K of
// keys and values, V vocabulary, I inputs and O outputs of a linear map. All matrices are
// row-major.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/operators.h"
#include "core/rng.h"
#include "core/rotary.h"
#include "core/tensor.h"
#include "core/update_ops.h"

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

/// dweight (shape of the stored weight) and dbias[O] (each may be empty) = (accumulate ? old : 0)
/// + x^T dy and column sums of dy.
struct LinearWeight {
  static constexpr std::string_view kName = "linear weight gradient";
  Linear& map;
  View x, dy;
  View dweight{}, dbias{};
  bool accumulate;
  auto views() { return std::array{&x, &dy, &dweight, &dbias}; }
  void run() const { map.backward_weight(*this); }
};

/// y[R,HD] = softmax(mask(q k^T / sqrt(D))) v; lse[samples,H,T] keeps log-sum-exp of each row. Keys
/// at or after lengths[samples] (int32; may be empty: T) are seen by no query; a length below 1
/// counts as 1, one above T as T. A query there is one like any other. Where the mask's share is
/// not 0, it drops probabilities: v is weighted with what is kept of them, scaled; lse is of all.
/// Where the shape is packed, starts[R] (int32) parts a sample into documents: neighbouring rows of
/// equal starts are one, whose queries see its own keys alone, by the same bits as if it were a
/// sample of its own.
struct AttentionForward {
  static constexpr std::string_view kName = "attention forward";
  Attention& attention;
  View qkv, lengths{};  // [R,(H+2K)D]: q, k, v side by side, heads contiguous inside each
  View y, lse;
  DropoutMask mask{};  // see AttentionShape::mask_row()
  View starts{};
  auto views() { return std::array{&qkv, &lengths, &y, &lse, &starts}; }
  void run() const { attention.forward(*this); }
};

/// dqkv[R,(H+2K)D] from dy[R,HD], recomputing the probabilities from qkv and lse (FlashAttention,
/// Dao et al. 2022, algorithm 4). dk and dv are summed over the heads that share them, in their
/// order, before they are rounded, and 0 for keys that no query sees.
struct AttentionBackward {
  static constexpr std::string_view kName = "attention backward";
  Attention& attention;
  View dy, qkv, lengths{}, y, lse;
  View dqkv;
  DropoutMask mask{};  // that of the forward pass
  View starts{};       // likewise
  auto views() { return std::array{&dy, &qkv, &lengths, &y, &lse, &dqkv, &starts}; }
  void run() const { attention.backward(*this); }
};

/// Layer norm (Ba et al. 2016): y[R,C] = (x - mean) rstd gamma + beta, statistics kept in mean[R],
/// rstd[R]. Not centered, RMSNorm (Zhang & Sennrich 2019): y = x rstd gamma, rstd[R] = 1 /
/// sqrt(mean(x^2) + eps); beta and mean are empty there, and so they are below.
template <bool kCentered>
struct NormForward {
  static constexpr std::string_view kName = kCentered ? "layer norm" : "rms norm";
  View x, gamma, beta{};
  View y, mean{}, rstd;
  float eps = 1e-5F;
  auto views() { return std::array{&x, &gamma, &beta, &y, &mean, &rstd}; }
};
using LayerNorm = NormForward<true>;
using RmsNorm = NormForward<false>;

/// dx[R,C] = residual_grad[R,C] + d norm / dx applied to dy[R,C]. residual_grad may be empty (then
/// 0), and dx may be residual_grad or dy itself.
template <bool kCentered>
struct NormInput {
  static constexpr std::string_view kName =
      kCentered ? "layer norm input gradient" : "rms norm input gradient";
  View dy, x, gamma, mean{}, rstd, residual_grad{};
  View dx;
  auto views() { return std::array{&dy, &x, &gamma, &mean, &rstd, &residual_grad, &dx}; }
};
using LayerNormInput = NormInput<true>;
using RmsNormInput = NormInput<false>;

/// dgamma[C], dbeta[C] = (accumulate ? old : 0) + sums over rows.
template <bool kCentered>
struct NormWeight {
  static constexpr std::string_view kName =
      kCentered ? "layer norm weight gradient" : "rms norm weight gradient";
  View dy, x, mean{}, rstd;
  View dgamma, dbeta{};
  bool accumulate;
  auto views() { return std::array{&dy, &x, &mean, &rstd, &dgamma, &dbeta}; }
};
using LayerNormWeight = NormWeight<true>;
using RmsNormWeight = NormWeight<false>;

/// table[T,P] fp32, P = spec.columns: of position t and pair i < P/2 the cosine of its angle, and
/// P/2 further its sine, both times spec.magnitude; computed in fp64, then rounded. To be made
/// once, before the first Rotate.
struct RotaryTable {
  static constexpr std::string_view kName = "rotary table";
  RotarySpec spec;
  View table;
  std::int64_t tokens;
  auto views() { return std::array{&table}; }
};

/// Rotates elements i and i + P/2 of the first `heads` heads of D columns of each row of
/// x[R,stride], in place, by the angles of the row's position (RoPE, Su et al. 2021, with the pairs
/// of Hugging Face's Llama); a head's columns after the first P = `columns` stay. For qkv together:
/// heads = query heads + key heads. `inverse`: the transposed rotation, which brings gradients
/// back. The position of row r is r % T, from the place starts[r] on where starts[R] (int32) are
/// given.
struct Rotate {
  static constexpr std::string_view kName = "rotary embedding";
  View x, table;  // table[T,P]
  std::int64_t stride, heads, head_dim, columns, tokens;
  bool inverse;
  View starts{};
  auto views() { return std::array{&x, &table, &starts}; }
};

/// y[R,F] = silu(u[:, :F]) u[:, F:] of u[R,2F] (SwiGLU, Shazeer 2020), F = `width`.
struct GatedSilu {
  static constexpr std::string_view kName = "gated silu";
  View u;
  std::int64_t width;
  View y;
  auto views() { return std::array{&u, &y}; }
};

/// du[R,2F] of dy[R,F]; du may be u.
struct GatedSiluInput {
  static constexpr std::string_view kName = "gated silu input gradient";
  View dy, u;
  std::int64_t width;
  View du;
  auto views() { return std::array{&dy, &u, &du}; }
};

/// y = tanh(x); y may be x.
struct Tanh {
  static constexpr std::string_view kName = "tanh";
  View x;
  View y;
  auto views() { return std::array{&x, &y}; }
};

/// dx = dy (1 - y^2); dx may be dy.
struct TanhInput {
  static constexpr std::string_view kName = "tanh input gradient";
  View dy, y;
  View dx;
  auto views() { return std::array{&dy, &y, &dx}; }
};

/// dx = dy f'(u), of what the epilogue `kind` of a linear map, an activation f, kept of u in aux:
/// its gradient where no product comes before it. dx may be dy.
struct ActivationInput {
  static constexpr std::string_view kName = "activation input gradient";
  Epilogue::Kind kind;
  View dy, aux;
  View dx;
  auto views() { return std::array{&dy, &aux, &dx}; }
};

/// x[R,C] = wte[token] + wtt[type] + wpe[position]; tokens[R] int32 in [0, V), types[R] int32 in
/// [0, K), R = samples x T. wpe may be empty (Llama), and wtt (all but BERT); without types, all
/// are of type 0. Positions are as those of Rotate.
struct Embed {
  static constexpr std::string_view kName = "embedding";
  View tokens, wte, wpe{};  // wpe[T,C]
  std::int64_t t;
  View x;
  View types{}, wtt{};  // wtt[K,C]
  View starts{};
  auto views() { return std::array{&tokens, &wte, &wpe, &x, &types, &wtt, &starts}; }
};

/// dwte[V,C], dwpe[T,C], dwtt[K,C] = (accumulate ? old : 0) + sums of dx[R,C] over rows, in an
/// order of the sizes alone. Empty ones are left out.
struct EmbedWeight {
  static constexpr std::string_view kName = "embedding gradient";
  View tokens, dx;
  std::int64_t t;
  View dwte, dwpe{};
  bool accumulate;
  View types{}, dwtt{};
  View starts{};
  auto views() { return std::array{&tokens, &dx, &dwte, &dwpe, &types, &dwtt, &starts}; }
};

/// patches[S N, channels P P] of image[S,channels,height,width] fp32: N patches of P x P pixels in
/// rows from the upper left, each in the order (channel, y, x) of a convolution's weight; P divides
/// height and width.
struct ImagePatches {
  static constexpr std::string_view kName = "image patches";
  View image;
  std::int64_t channels, height, width, patch;
  View patches;
  auto views() { return std::array{&image, &patches}; }
};

/// y[S (N+1),C]: of each sample cls[C], then its N rows of x[S N,C], plus wpe[N+1,C].
struct JoinClass {
  static constexpr std::string_view kName = "class token";
  View x, cls, wpe;
  View y;
  auto views() { return std::array{&x, &cls, &wpe, &y}; }
};

/// dcls[C], dwpe[N+1,C] = (accumulate ? old : 0) + sums of dy[S (N+1),C] over samples in order.
struct JoinClassWeight {
  static constexpr std::string_view kName = "class token gradient";
  View dy;
  View dcls, dwpe;
  bool accumulate;
  auto views() { return std::array{&dy, &dcls, &dwpe}; }
};

/// dx[S N,C]: dy[S (N+1),C] without the first row of each of the S samples.
struct SplitClass {
  static constexpr std::string_view kName = "class token input gradient";
  View dy;
  std::int64_t samples;
  View dx;
  auto views() { return std::array{&dy, &dx}; }
};

/// places[S] (int32): the last of the lengths[S] rows of each sample, which has t. A length below 1
/// counts as 1, one above t as t.
struct FindLastRows {
  static constexpr std::string_view kName = "last rows found";
  View lengths;
  std::int64_t t;
  View places;
  auto views() { return std::array{&lengths, &places}; }
};

/// places[S,M], taken[S,M] (int32): the rows of each sample of targets[S,T] that have one, in
/// order, and their targets; kIgnored where it has fewer than M. It must not have more.
struct FindTargets {
  static constexpr std::string_view kName = "targets found";
  View targets;
  std::int64_t samples;
  View places, taken;
  auto views() { return std::array{&targets, &places, &taken}; }
};

/// y[S M,C] = the rows of x[S T,C] that places[S,M] (int32) names, from 0 in each of the S samples;
/// 0 where a place is negative. Where places are empty, M is 1: the first row.
struct TakeRows {
  static constexpr std::string_view kName = "rows taken";
  View x, places{};
  std::int64_t samples;
  View y;
  auto views() { return std::array{&x, &places, &y}; }
};

/// The gradient of TakeRows: dx[S T,C] is dy[S M,C] in the rows that were taken, 0 elsewhere. No
/// place may be named twice.
struct SpreadRows {
  static constexpr std::string_view kName = "rows spread";
  View dy, places{};
  std::int64_t samples;
  View dx;
  auto views() { return std::array{&dy, &places, &dx}; }
};

/// Softmax cross-entropy of logits[R,V] at targets[R] (int32; < 0 is ignored). row_loss[R] gets
/// -log p(target), 0 where ignored. If `training`, logits become their own gradient times
/// loss_scale (rows that are ignored become 0); else they stay. `smoothing` is the share of the
/// target that all V classes have alike (Szegedy et al. 2016), as PyTorch's label_smoothing: the
/// loss is then (1 - smoothing) times the above plus smoothing times the mean of -log p.
struct CrossEntropy {
  static constexpr std::string_view kName = "cross entropy";
  View logits, targets;
  float loss_scale;
  bool training;
  View row_loss;
  float smoothing = 0;
  auto views() { return std::array{&logits, &targets, &row_loss}; }
};

/// The loss of a span: row_loss[S] = (CE of logits[:, 0] at starts[S] + CE of logits[:, 1] at
/// ends[S]) / 2, each a softmax cross-entropy over the T positions of a sample, logits[S T, 2].
/// A target (int32) outside [0, T) is ignored: its half of the loss counts 0, its gradient is 0,
/// the other half stays. (transformers ignores the same targets, but divides by those left in a
/// batch.) If `training`, logits become their own gradient times loss_scale; else they stay.
/// `smoothing` is as above, over the T positions.
struct SpanCrossEntropy {
  static constexpr std::string_view kName = "span cross entropy";
  View logits, starts, ends;
  std::int64_t t;
  float loss_scale;
  bool training;
  View row_loss;
  float smoothing = 0;
  auto views() { return std::array{&logits, &starts, &ends, &row_loss}; }
};

/// The loss of logits[R,K] x at scores[R,K] y, fp32: row_loss[R] is the sum of (x - y)^2, or of
/// -y log p - (1 - y) log(1 - p) with p = 1 / (1 + e^-x), over the K of a row. A score that is
/// kNoScore (core/model/batch.h) is ignored: its loss and its gradient are 0. If `training`, logits
/// become their own gradient times loss_scale; else they stay.
struct ScoreLoss {
  static constexpr std::string_view kName = "score loss";
  enum class Kind { squares, binary };
  View logits, scores;
  Kind kind;
  float loss_scale;
  bool training;
  View row_loss;
  auto views() { return std::array{&logits, &scores, &row_loss}; }
};

/// y[R,C] = residual[R,C] + what `mask` keeps of u[R,C], scaled; the others become 0. residual may
/// be empty (then 0), and y may be u. It is its own gradient, with u = dy.
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

/// All kernels that are no operator's. Backends declare a function for each from this list.
#define CONCERTINA_KERNELS(KERNEL) \
  KERNEL(LayerNorm)                \
  KERNEL(LayerNormInput)           \
  KERNEL(LayerNormWeight)          \
  KERNEL(RmsNorm)                  \
  KERNEL(RmsNormInput)             \
  KERNEL(RmsNormWeight)            \
  KERNEL(RotaryTable)              \
  KERNEL(Rotate)                   \
  KERNEL(GatedSilu)                \
  KERNEL(GatedSiluInput)           \
  KERNEL(Tanh)                     \
  KERNEL(TanhInput)                \
  KERNEL(ActivationInput)          \
  KERNEL(Embed)                    \
  KERNEL(EmbedWeight)              \
  KERNEL(ImagePatches)             \
  KERNEL(JoinClass)                \
  KERNEL(JoinClassWeight)          \
  KERNEL(SplitClass)               \
  KERNEL(FindLastRows)             \
  KERNEL(FindTargets)              \
  KERNEL(TakeRows)                 \
  KERNEL(SpreadRows)               \
  KERNEL(CrossEntropy)             \
  KERNEL(SpanCrossEntropy)         \
  KERNEL(ScoreLoss)                \
  KERNEL(ApplyDropout)             \
  KERNEL(Axpby)                    \
  KERNEL(SumSquares)               \
  CONCERTINA_UPDATE_KERNELS(KERNEL)

#define CONCERTINA_ALTERNATIVE(Kernel) , Kernel
using Op = std::variant<PackWeights, LinearForward, LinearInput, LinearWeight, AttentionForward,
                        AttentionBackward CONCERTINA_KERNELS(CONCERTINA_ALTERNATIVE)>;
#undef CONCERTINA_ALTERNATIVE

/// The names of all kernels, by index in Op.
inline constexpr auto kOpNames = []<class... Ops>(std::type_identity<std::variant<Ops...>>) {
  return std::array{Ops::kName...};
}(std::type_identity<Op>{});

/// The operations of a product, as it is really computed; every other kernel counts 0.
double flops_of(const Op& op);

}  // namespace concertina
