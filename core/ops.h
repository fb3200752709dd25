// Kernel calls as values: one struct per kernel, which names what it reads and writes. All are
// issued through Backend::run(), where they can be counted, timed and moved.
// Invariants: an op owns nothing, and what it refers to outlives the kernel. All sizes follow from
// its views and numbers.
//
// Dimensions: R rows (= microbatch samples x T), T tokens per sample, C width, H query heads of D
// columns, K key and value heads, V vocabulary, I inputs and O outputs of a linear map. All
// matrices are row-major.
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

/// An op implemented by the Linear or Attention that it refers to.
template <class T>
concept OperatorOp = requires(const T& op) {
  op.run();
};

/// Packs the stored weight of a linear map. The result is valid until the next packing.
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
  void run() const {
    map.check(x, map.shape().in, "x");
    map.check(y, map.shape().out, "y");
    map.forward(*this);
  }
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
  void run() const {
    map.check(dy, map.shape().out, "dy");
    map.check(dx, map.shape().in, "dx");
    map.backward_input(*this);
  }
};

/// dweight (in the shape of the stored weight) and dbias[O] = (accumulate ? old : 0) + x^T dy and
/// the column sums of dy. Either may be empty.
struct LinearWeight {
  static constexpr std::string_view kName = "linear weight gradient";
  Linear& map;
  View x, dy;
  View dweight{}, dbias{};
  bool accumulate;
  auto views() { return std::array{&x, &dy, &dweight, &dbias}; }
  void run() const {
    map.check(x, map.shape().in, "x");
    map.check(dy, map.shape().out, "dy");
    map.backward_weight(*this);
  }
};

/// y[R,HD] = softmax(mask(q k^T / sqrt(D))) v; lse[samples,H,T] is the log-sum-exp of each row.
/// Keys at or after lengths[samples] (int32, clamped to [1, T]; empty means T) are masked; queries
/// there are computed as usual. If `mask.share` is not 0, dropout applies: v is weighted by the
/// kept, scaled probabilities; lse includes all probabilities. If the shape is packed, starts[R]
/// (int32) divides samples into documents, which are runs of rows with equal starts. Queries see
/// only keys of their document, and the result is bit-identical to that of separate samples.
struct AttentionForward {
  static constexpr std::string_view kName = "attention forward";
  Attention& attention;
  View qkv, lengths{};  // [R,(H+2K)D]: q, k, v side by side, each with contiguous heads
  View y, lse;
  DropoutMask mask{};  // see AttentionShape::mask_row()
  View starts{};
  View cache{};  // of AttentionShape::cache_elements(); then lse is not written
  auto views() { return std::array{&qkv, &lengths, &y, &lse, &starts, &cache}; }
  void run() const {
    attention.require(lengths, mask, starts, cache);
    attention.forward(*this);
  }
};

/// Computes dqkv[R,(H+2K)D] from dy[R,HD], recomputing the probabilities from qkv and lse
/// (FlashAttention, Dao et al. 2022, algorithm 4). dk and dv are summed over the heads that share
/// them, in order, before rounding. They are 0 for keys that no query sees.
struct AttentionBackward {
  static constexpr std::string_view kName = "attention backward";
  Attention& attention;
  View dy, qkv, lengths{}, y, lse;
  View dqkv;
  DropoutMask mask{};  // the same as in the forward pass
  View starts{};       // likewise
  auto views() { return std::array{&dy, &qkv, &lengths, &y, &lse, &dqkv, &starts}; }
  void run() const {
    attention.require(lengths, mask, starts);
    attention.backward(*this);
  }
};

/// Layer norm (Ba et al. 2016): y[R,C] = (x - mean) rstd gamma + beta, with statistics mean[R] and
/// rstd[R]. If not centered, RMSNorm (Zhang & Sennrich 2019): y = x rstd gamma, rstd[R] = 1 /
/// sqrt(mean(x^2) + eps); beta and mean are empty, also in the gradients below.
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

/// dx[R,C] = residual_grad[R,C] + the gradient of the norm for dy[R,C]. residual_grad may be empty
/// (0). dx may alias residual_grad or dy.
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

/// Fills table[T,P] fp32, P = spec.columns: column i < P/2 of row t is the cosine of the angle of
/// pair i at position t, and column i + P/2 is its sine, both times spec.magnitude. Computed in
/// fp64, then rounded. Must run once, before the first Rotate.
struct RotaryTable {
  static constexpr std::string_view kName = "rotary table";
  RotarySpec spec;
  View table;
  std::int64_t tokens;
  auto views() { return std::array{&table}; }
};

/// Rotates elements i and i + P/2 of the first `heads` heads of D columns in each row of
/// x[R,stride], in place, by the angles of the row's position (RoPE, Su et al. 2021, with the pairs
/// of Hugging Face's Llama). The columns of a head after the first P = `columns` do not change. For
/// a joint qkv, heads = query heads + key heads. `inverse` applies the transposed rotation, for
/// gradients. The position of row r is r % T, minus starts[r] if starts[R] (int32) is given.
struct Rotate {
  static constexpr std::string_view kName = "rotary embedding";
  View x, table;  // table[T,P]
  std::int64_t stride, heads, head_dim, columns, tokens;
  bool inverse;
  View starts{};
  auto views() { return std::array{&x, &table, &starts}; }
};

/// y[R,F] = silu(u[:, :F]) u[:, F:] for u[R,2F] (SwiGLU, Shazeer 2020), F = `width`.
struct GatedSilu {
  static constexpr std::string_view kName = "gated silu";
  View u;
  std::int64_t width;
  View y;
  auto views() { return std::array{&u, &y}; }
};

/// Computes du[R,2F] from dy[R,F]; du may alias u.
struct GatedSiluInput {
  static constexpr std::string_view kName = "gated silu input gradient";
  View dy, u;
  std::int64_t width;
  View du;
  auto views() { return std::array{&dy, &u, &du}; }
};

/// y = tanh(x); y may alias x.
struct Tanh {
  static constexpr std::string_view kName = "tanh";
  View x;
  View y;
  auto views() { return std::array{&x, &y}; }
};

/// dx = dy (1 - y^2); dx may alias dy.
struct TanhInput {
  static constexpr std::string_view kName = "tanh input gradient";
  View dy, y;
  View dx;
  auto views() { return std::array{&dy, &y, &dx}; }
};

/// dx = dy f'(u), where f is the activation `kind` of a linear map's epilogue, which saved aux for
/// u. Used if f' is not fused with a product. dx may alias dy.
struct ActivationInput {
  static constexpr std::string_view kName = "activation input gradient";
  Epilogue::Kind kind;
  View dy, aux;
  View dx;
  auto views() { return std::array{&dy, &aux, &dx}; }
};

/// x[R,C] = wte[token] + wtt[type] + wpe[position]; tokens[R] int32 in [0, V), types[R] int32 in
/// [0, K), R = samples x T. wpe may be empty (Llama), as may wtt (all but BERT). Without types, all
/// tokens have type 0. Positions are as in Rotate.
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
/// order determined by the sizes alone. Empty views are skipped.
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

/// patches[S N, channels P P] from image[S,channels,height,width] fp32: the N patches of P x P
/// pixels, row by row from the upper left, each in the order (channel, y, x) of a convolution's
/// weight. P divides height and width.
struct ImagePatches {
  static constexpr std::string_view kName = "image patches";
  View image;
  std::int64_t channels, height, width, patch;
  View patches;
  auto views() { return std::array{&image, &patches}; }
};

/// y[S (N+1),C]: cls[C], then the N rows of x[S N,C], for each sample, plus wpe[N+1,C].
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

/// places[S] (int32): the last of the first lengths[S] rows of each sample, which has t rows.
/// Lengths are clamped to [1, t].
struct FindLastRows {
  static constexpr std::string_view kName = "last rows found";
  View lengths;
  std::int64_t t;
  View places;
  auto views() { return std::array{&lengths, &places}; }
};

/// places[S,M], taken[S,M] (int32): the rows of each sample of targets[S,T] that have a target, in
/// order, and these targets. At most M rows may have targets; kIgnored fills the remaining places.
struct FindTargets {
  static constexpr std::string_view kName = "targets found";
  View targets;
  std::int64_t samples;
  View places, taken;
  auto views() { return std::array{&targets, &places, &taken}; }
};

/// y[S M,C] = the rows of x[S T,C] selected by places[S,M] (int32), which count from 0 in each
/// sample; 0 for negative places. If `places` is empty, M is 1 and the first row is selected.
struct TakeRows {
  static constexpr std::string_view kName = "rows taken";
  View x, places{};
  std::int64_t samples;
  View y;
  auto views() { return std::array{&x, &places, &y}; }
};

/// The gradient of TakeRows: dx[S T,C] is dy[S M,C] in the selected rows and 0 elsewhere. Places
/// must not repeat.
struct ScatterRows {
  static constexpr std::string_view kName = "rows spread";
  View dy, places{};
  std::int64_t samples;
  View dx;
  auto views() { return std::array{&dy, &places, &dx}; }
};

/// Softmax cross-entropy of logits[R,V] with targets[R] (int32; < 0 is ignored). row_loss[R] is
/// -log p(target), or 0 if ignored. If `training`, the logits are replaced with their gradient
/// times loss_scale (0 in ignored rows). `smoothing` is the fraction of the target that is spread
/// evenly over all V classes (Szegedy et al. 2016), like PyTorch's label_smoothing: the loss is (1
/// - smoothing) times the above plus smoothing times the mean of -log p.
struct CrossEntropy {
  static constexpr std::string_view kName = "cross entropy";
  View logits, targets;
  float loss_scale;
  bool training;
  View row_loss;
  float smoothing = 0;
  auto views() { return std::array{&logits, &targets, &row_loss}; }
};

/// The loss of knowledge distillation (Hinton et al. 2015), in training: row_loss[R] is (1 - share)
/// times the loss of CrossEntropy plus share times temperature^2 times the Kullback-Leibler
/// divergence of softmax(logits / temperature) from softmax(teacher / temperature), or 0 if the
/// target is ignored. teacher[R,V] is fp32. The logits are replaced with their gradient.
struct Distillation {
  static constexpr std::string_view kName = "distillation";
  View logits, targets, teacher;
  float loss_scale;
  View row_loss;
  float smoothing, share, temperature;
  auto views() { return std::array{&logits, &targets, &teacher, &row_loss}; }
};

/// The loss of a span: row_loss[S] = (CE of logits[:, 0] with starts[S] + CE of logits[:, 1] with
/// ends[S]) / 2, where both are softmax cross-entropies over the T positions of a sample in
/// logits[S T, 2]. A target (int32) outside [0, T) is ignored: its half of the loss and its
/// gradient are 0. (transformers ignores the same targets, but divides by the number of remaining
/// targets in a batch.) If `training`, the logits are replaced with their gradient times
/// loss_scale. `smoothing` is as in CrossEntropy, over the T positions.
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

/// The loss of logits[R,K] x with scores[R,K] y in fp32: row_loss[R] is the sum over a row of (x -
/// y)^2, or of -y log p - (1 - y) log(1 - p) with p = 1 / (1 + e^-x). A score of kNoScore
/// (core/model/batch.h) is ignored: its loss and gradient are 0. If `training`, the logits are
/// replaced with their gradient times loss_scale.
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

/// y[R,C] = residual[R,C] + d, where d is the scaled u[R,C] if `mask` keeps it, and 0 otherwise.
/// residual may be empty (0), and y may alias u. The gradient is the same op with u = dy.
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

/// fp64 sums of squares over blocks of `block` elements of x. Valid after synchronize().
struct SumSquares {
  static constexpr std::string_view kName = "norm";
  View x;
  std::size_t block;
  std::span<double> sums;
  auto views() { return std::array{&x}; }
};

/// All kernels that are not operators. Backends declare a function for each from this list.
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
  KERNEL(ScatterRows)              \
  KERNEL(CrossEntropy)             \
  KERNEL(Distillation)             \
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

/// Returns the number of operations that a product actually performs, or 0 for any other kernel.
double flops_of(const Op& op);

}  // namespace concertina
