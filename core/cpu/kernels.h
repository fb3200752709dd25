// The loops between the products, and attention: one table of functions an instruction set.
// Each table comes from the same source (loops.cc, panel_attention.cc, attention_loops.cc) compiled
// with other flags; pair_attention.cc is for AVX512-BF16 alone and panel_products.cc for AVX2;
// isa.cc chooses at run time.
// Plain pointers and no library headers in here: an inline function of a library that is compiled
// with AVX-512 must never replace the portable one at link time. Invariant: every function is
// serial and its result depends on its arguments alone; callers split work over threads by rows,
// columns or heads, never inside a sum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/adamw.h"
#include "core/bf16.h"
#include "core/update_rules.h"

namespace concertina::cpu {

/// A DropoutMask's constants (core/dropout.h): the Philox key, two of its counters, and the rest.
struct DropoutRule {
  std::uint32_t key0, key1, step, unit, threshold;
  float scale;
};

struct ImageShape {
  std::int64_t channels, height, width, patch;
};

/// Loops over activations of type T, float or Bf16: read and written in T, computed in fp32. What a
/// product left is fp32 in `u`, which may be the output where T is float.
template <class T>
struct ActivationLoops {
  // g[rows,n] = gelu(u[rows,n] + bias[n]), slope = gelu'(u + bias)
  void (*gelu)(const float* u, const float* bias, T* g, T* slope, std::int64_t rows,
               std::int64_t n);
  void (*gelu_erf)(const float* u, const float* bias, T* g, T* slope, std::int64_t rows,
                   std::int64_t n);
  // y[rows,f] = silu(u[:, :f]) u[:, f:] of u[rows,2f]; its gradient, du may be u
  void (*gated_silu)(const T* u, T* y, std::int64_t rows, std::int64_t f);
  void (*gated_silu_backward)(const T* dy, const T* u, T* du, std::int64_t rows, std::int64_t f);
  // y = x y
  void (*scale)(const T* x, T* y, std::int64_t n);
  // y = tanh(x); dx = dy (1 - y^2)
  void (*tanh)(const T* x, T* y, std::int64_t n);
  void (*tanh_backward)(const T* dy, const T* y, T* dx, std::int64_t n);
  // y[rows,n] = u[rows,n] + bias[n] + residual[rows,n]; bias and residual may be null
  void (*bias_residual)(const float* u, const float* bias, const T* residual, T* y,
                        std::int64_t rows, std::int64_t n);
  // y = u * x
  void (*multiply)(const float* u, const T* x, T* y, std::int64_t count);
  // out[n] = (accumulate ? out : 0) + column sums of a[rows, stride], rows in order
  void (*column_sum)(const T* a, std::int64_t rows, std::int64_t stride, std::int64_t n, float* out,
                     bool accumulate);
  void (*layer_norm)(const T* x, const float* gamma, const float* beta, float eps, T* y,
                     float* mean, float* rstd, std::int64_t rows, std::int64_t c);
  void (*layer_norm_backward_input)(const T* dy, const T* x, const float* gamma, const float* mean,
                                    const float* rstd, const T* residual, T* dx, std::int64_t rows,
                                    std::int64_t c);
  // columns [0, n) of rows with stride c
  void (*layer_norm_backward_weight)(const T* dy, const T* x, const float* mean, const float* rstd,
                                     float* dgamma, float* dbeta, std::int64_t rows, std::int64_t c,
                                     std::int64_t n, bool accumulate);
  // The same of RMS norm
  void (*rms_norm)(const T* x, const float* gamma, float eps, T* y, float* rstd, std::int64_t rows,
                   std::int64_t c);
  void (*rms_norm_backward_input)(const T* dy, const T* x, const float* gamma, const float* rstd,
                                  const T* residual, T* dx, std::int64_t rows, std::int64_t c);
  void (*rms_norm_backward_weight)(const T* dy, const T* x, const float* rstd, float* dgamma,
                                   std::int64_t rows, std::int64_t c, std::int64_t n,
                                   bool accumulate);
  // heads of d elements side by side, by the angles of `table`: d/2 cosines, then d/2 sines
  void (*rotate)(T* x, const float* table, std::int64_t heads, std::int64_t d, bool inverse);
  // y[n] = token[n] + type[n] + position[n]; type and position may be null
  void (*embed)(const float* token, const float* type, const float* position, T* y, std::int64_t n);
  // y[n] = a[n] + b[n]; a[n], b[n] and c[n] += x[n], of which b and c may be null
  void (*add)(const T* a, const float* b, T* y, std::int64_t n);
  void (*accumulate)(const T* x, float* a, float* b, float* c, std::int64_t n);
  // one row of patches of a sample, `image` at its first pixel
  void (*patches)(const float* image, const ImageShape& shape, T* to);
  // one row of softmax cross-entropy; returns -log p[target]
  float (*cross_entropy_row)(T* logits, std::int64_t v, std::int64_t target, float scale,
                             bool training);
  // one sample's logits[t,2]; returns its row_loss
  float (*span_cross_entropy)(T* logits, std::int64_t t, std::int64_t start, std::int64_t end,
                              float scale, bool training);
  // y[n] = residual[n] + what is kept of u[n]: elements from `first`, a multiple of 4, of a sample.
  // residual may be null, y may be u
  void (*dropout)(const DropoutRule& rule, std::uint32_t sample, std::int64_t first, const T* u,
                  const T* residual, T* y, std::int64_t n);
};

/// Query i sees keys [0, min(first + i step, most)): step is 1 under a causal mask, else 0.
struct SeenKeys {
  std::int64_t first, step, most;
};

/// Scores of some queries of one head against the keys that any of them sees.
struct ScoreTile {
  SeenKeys seen;  // by row
  std::int64_t rows, keys;
  std::int64_t stride;  // of a row of scores or probabilities, elements; >= keys rounded up to 16
  float scale;
};

/// Rows of D activations, `stride` elements apart.
struct HeadRows {
  std::int64_t stride, d;
};

/// What attention in bf16 does between its products. Probabilities `p` and score gradients `ds` are
/// zero where a query sees no key.
struct AttentionLoops {
  // p[rows,keys] = e^(scale s - top of the row), inverse[rows] = 1 / row sums, lse[rows]
  void (*softmax)(const ScoreTile& tile, float* s, Bf16* p, float* inverse, float* lse);
  // p = e^(scale s - lse), ds = scale p (dp - dy . y)
  void (*score_grads)(const ScoreTile& tile, float* s, float* dp, const float* lse, const Bf16* y,
                      const Bf16* dy, HeadRows rows, Bf16* p, Bf16* ds);
  // to[count,D] = factor[count] from[count,D]; factor may be null (1)
  void (*store)(const float* from, const float* factor, std::int64_t count, HeadRows rows,
                Bf16* to);
};

/// Attention over panels of activations of type T, of one head of keys and values in one sample and
/// the `group` neighbouring heads of queries that share it. `stride` is that of rows of qkv in
/// elements, `width` that of y's. All start at this head's (or the first query head's) first column
/// of the sample's first row, lse[group,T] at the first query head's. The gradient of keys
/// that no query sees is zero.
struct HeadShape {
  std::int64_t tokens, head_dim, stride, width, group;
  SeenKeys seen;
};
template <class T>
struct PanelAttention {
  std::size_t (*scratch)(const HeadShape& shape, bool backward);  // bytes
  void (*forward)(const HeadShape& shape, const T* q, const T* k, const T* v, T* y, float* lse,
                  void* scratch);
  void (*backward)(const HeadShape& shape, const T* q, const T* k, const T* v, const T* y,
                   const float* lse, const T* dy, T* dq, T* dk, T* dv, void* scratch);
};

/// Products of linear maps in fp32 over packed panels (panel_products.cc).
inline constexpr std::int64_t kPanelProductRows = 64;  // at most, of rows()
struct PanelProducts {
  // floats that pack() writes for B[k,n]
  std::int64_t (*packed)(std::int64_t k, std::int64_t n);
  // B[k,n], of which one stride is 1
  void (*pack)(const float* b, std::int64_t b_row, std::int64_t b_column, std::int64_t k,
               std::int64_t n, float* packed);
  // c[m,n] = a[m,k] B[k,n], a and c row-major and dense
  void (*rows)(const float* a, const float* packed, std::int64_t m, std::int64_t k, std::int64_t n,
               float* c);
  // floats of scratch for outer() of at most these
  std::int64_t (*outer_scratch)(std::int64_t depth, std::int64_t m, std::int64_t n);
  // c[m,n] (+)= left[depth,m]^T right[depth,n]; all three with row strides
  void (*outer)(const float* left, std::int64_t left_row, const float* right,
                std::int64_t right_row, std::int64_t depth, std::int64_t m, std::int64_t n,
                float* c, std::int64_t c_row, bool accumulate, float* scratch);
};

struct LoopTable {
  ActivationLoops<float> f32;
  ActivationLoops<Bf16> bf16;
  const PanelAttention<float>* attention_f32;
  const AttentionLoops* attention_bf16;

  void (*axpby)(float a, const float* x, float b, float* y, std::int64_t n);
  double (*sum_squares)(const float* x, std::int64_t n);
  void (*adamw)(const AdamWConstants& rule, float* w, float* m, float* v, const float* g,
                std::int64_t n);
  void (*sgd)(const SgdRule& rule, float* w, float* m, const float* g, std::int64_t n);
  void (*lion)(const LionRule& rule, float* w, float* m, const float* g, std::int64_t n);
  // g = u of LAMB; lr is not read
  void (*lamb)(const AdamWConstants& rule, const float* w, float* m, float* v, float* g,
               std::int64_t n);
  // y = x; x = x rounded to bf16
  void (*widen)(const Bf16* x, float* y, std::int64_t n);
  void (*cut)(float* x, std::int64_t n);
};

}  // namespace concertina::cpu
