// The loops between the products, and attention: one table of functions an instruction set.
// Each table comes from the same source (loops.cc, attention.cc) compiled with other flags; isa.cc
// chooses at run time. Plain pointers and no library headers in here: an inline function of a
// library that is compiled with AVX-512 must never replace the portable one at link time.
// Invariant: every function is serial and its result depends on its arguments alone; callers split
// work over threads by rows, columns or heads, never inside a sum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace concertina::cpu {

/// Sizes of one attention problem; `stride` is the row stride of qkv in elements (3C), C = H D.
struct HeadShape {
  std::int64_t tokens, head_dim, stride, width;
};

struct AdamWRule {
  float lr, beta1, beta2, eps, decay;          // decay = lr * weight_decay
  float grad_scale, correction1, correction2;  // 1/(1-beta1^t), 1/sqrt(1-beta2^t)
};

struct LoopTable {
  // u[rows,n] holds x W on entry; with bias[n]: g = gelu(u + bias), u = gelu'(u + bias).
  void (*gelu)(float* u, const float* bias, float* g, std::int64_t rows, std::int64_t n);
  // y[rows,n] += bias[n] + residual[rows,n]
  void (*bias_residual)(float* y, const float* bias, const float* residual, std::int64_t rows,
                        std::int64_t n);
  // y[rows,n] += bias[n]
  void (*bias)(float* y, const float* bias, std::int64_t rows, std::int64_t n);
  // y *= x
  void (*multiply)(float* y, const float* x, std::int64_t count);
  // out[n] = (accumulate ? out : 0) + column sums of a[rows, stride], rows in order
  void (*column_sum)(const float* a, std::int64_t rows, std::int64_t stride, std::int64_t n,
                     float* out, bool accumulate);
  void (*layer_norm)(const float* x, const float* gamma, const float* beta, float* y, float* mean,
                     float* rstd, std::int64_t rows, std::int64_t c);
  void (*layer_norm_backward_input)(const float* dy, const float* x, const float* gamma,
                                    const float* mean, const float* rstd, const float* residual,
                                    float* dx, std::int64_t rows, std::int64_t c);
  // columns [0, n) of rows with stride c
  void (*layer_norm_backward_weight)(const float* dy, const float* x, const float* mean,
                                     const float* rstd, float* dgamma, float* dbeta,
                                     std::int64_t rows, std::int64_t c, std::int64_t n,
                                     bool accumulate);
  // y[n] = a[n] + b[n]; y[n] += a[n]; y = a x + b y
  void (*add)(const float* a, const float* b, float* y, std::int64_t n);
  void (*axpby)(float a, const float* x, float b, float* y, std::int64_t n);
  // one row of softmax cross-entropy; returns -log p[target]
  float (*cross_entropy_row)(float* logits, std::int64_t v, std::int64_t target, float scale,
                             bool training);
  double (*sum_squares)(const float* x, std::int64_t n);
  void (*adamw)(const AdamWRule& rule, float* w, float* m, float* v, const float* g,
                std::int64_t n);

  // One head of one sample. q, k, v start at this head's first column of the sample's first row.
  std::size_t (*attention_scratch)(const HeadShape& shape, bool backward);  // bytes
  void (*attention_forward)(const HeadShape& shape, const float* q, const float* k, const float* v,
                            float* y, float* lse, void* scratch);
  void (*attention_backward)(const HeadShape& shape, const float* q, const float* k, const float* v,
                             const float* y, const float* lse, const float* dy, float* dq,
                             float* dk, float* dv, void* scratch);
};

}  // namespace concertina::cpu
