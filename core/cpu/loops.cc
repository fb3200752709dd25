// Fused loops between the products; compiled once for each instruction set (kernels.h).
#include "core/cpu/activations.h"
#include "core/cpu/cross_entropy.h"
#include "core/cpu/dropout.h"
#include "core/cpu/inputs.h"
#include "core/cpu/kernels.h"
#include "core/cpu/rms_norm.h"
#include "core/cpu/rotary.h"
#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

using Int = std::int64_t;

template <class T>
void bias_residual(const float* u, const float* bias, const T* residual, T* y, Int rows, Int n) {
  for (Int r = 0; r < rows; ++r, u += n, y += n) {
    if (bias != nullptr && residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i] + (bias[i] + to_float(residual[i])));
      residual += n;
    } else if (residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i] + to_float(residual[i]));
      residual += n;
    } else if (bias != nullptr) {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i] + bias[i]);
    } else {
#pragma omp simd
      for (Int i = 0; i < n; ++i) y[i] = rounded<T>(u[i]);
    }
  }
}

template <class T>
void multiply(const float* u, const T* x, T* y, Int count) {
#pragma omp simd
  for (Int i = 0; i < count; ++i) y[i] = rounded<T>(u[i] * to_float(x[i]));
}

template <class T>
void scale(const T* x, T* y, Int count) {
#pragma omp simd
  for (Int i = 0; i < count; ++i) y[i] = rounded<T>(to_float(x[i]) * to_float(y[i]));
}

// Four rows a pass: a quarter of the loads and stores of `out`, and a shorter chain of roundings.
template <class T>
void column_sum(const T* a, Int rows, Int stride, Int n, float* out, bool accumulate) {
  if (!accumulate) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) out[i] = 0;
  }
  Int r = 0;
  for (; r + 4 <= rows; r += 4, a += 4 * stride) {
    const T *a1 = a + stride, *a2 = a1 + stride, *a3 = a2 + stride;
#pragma omp simd
    for (Int i = 0; i < n; ++i)
      out[i] += (to_float(a[i]) + to_float(a1[i])) + (to_float(a2[i]) + to_float(a3[i]));
  }
  for (; r < rows; ++r, a += stride) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) out[i] += to_float(a[i]);
  }
}

template <class T>
void layer_norm(const T* x, const float* gamma, const float* beta, float eps, T* y, float* mean,
                float* rstd, Int rows, Int c) {
  for (Int r = 0; r < rows; ++r, x += c, y += c) {
    float sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
    for (Int i = 0; i < c; ++i) sum += to_float(x[i]);
    const float m = sum / static_cast<float>(c);
#pragma omp simd reduction(+ : square)
    for (Int i = 0; i < c; ++i) square += (to_float(x[i]) - m) * (to_float(x[i]) - m);
    const float s = 1.0F / __builtin_sqrtf(square / static_cast<float>(c) + eps);
#pragma omp simd
    for (Int i = 0; i < c; ++i) y[i] = rounded<T>((to_float(x[i]) - m) * s * gamma[i] + beta[i]);
    mean[r] = m;
    rstd[r] = s;
  }
}

// dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma (Ba et al. 2016).
template <class T>
void layer_norm_backward_input(const T* dy, const T* x, const float* gamma, const float* mean,
                               const float* rstd, const T* residual, T* dx, Int rows, Int c) {
  for (Int r = 0; r < rows; ++r, dy += c, x += c, dx += c) {
    const float m = mean[r], s = rstd[r];
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (Int i = 0; i < c; ++i) {
      const float g = to_float(dy[i]) * gamma[i];
      sum += g;
      dot += g * (to_float(x[i]) - m);
    }
    const float a = sum / static_cast<float>(c);
    const float b = dot * s * s / static_cast<float>(c);
    if (residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < c; ++i)
        dx[i] = rounded<T>(to_float(residual[i]) +
                           s * (to_float(dy[i]) * gamma[i] - a - (to_float(x[i]) - m) * b));
      residual += c;
    } else {
#pragma omp simd
      for (Int i = 0; i < c; ++i)
        dx[i] = rounded<T>(s * (to_float(dy[i]) * gamma[i] - a - (to_float(x[i]) - m) * b));
    }
  }
}

template <class T>
void layer_norm_backward_weight(const T* dy, const T* x, const float* mean, const float* rstd,
                                float* dgamma, float* dbeta, Int rows, Int c, Int n,
                                bool accumulate) {
  if (!accumulate) {
    for (Int i = 0; i < n; ++i) dgamma[i] = dbeta[i] = 0;
  }
  Int r = 0;
  for (; r + 2 <= rows; r += 2, dy += 2 * c, x += 2 * c) {
    const float m0 = mean[r], s0 = rstd[r], m1 = mean[r + 1], s1 = rstd[r + 1];
    const T *dy1 = dy + c, *x1 = x + c;
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float g0 = to_float(dy[i]), g1 = to_float(dy1[i]);
      dgamma[i] += g0 * ((to_float(x[i]) - m0) * s0) + g1 * ((to_float(x1[i]) - m1) * s1);
      dbeta[i] += g0 + g1;
    }
  }
  for (; r < rows; ++r) {
    const float m0 = mean[r], s0 = rstd[r];
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      dgamma[i] += to_float(dy[i]) * ((to_float(x[i]) - m0) * s0);
      dbeta[i] += to_float(dy[i]);
    }
  }
}

template <class T>
constexpr ActivationLoops<T> kActivationLoops{
    .gelu = gelu<T>,
    .gelu_erf = gelu_erf<T>,
    .gated_silu = gated_silu<T>,
    .gated_silu_backward = gated_silu_backward<T>,
    .scale = scale<T>,
    .tanh = hyperbolic_tangent<T>,
    .tanh_backward = hyperbolic_tangent_backward<T>,
    .bias_residual = bias_residual<T>,
    .multiply = multiply<T>,
    .column_sum = column_sum<T>,
    .layer_norm = layer_norm<T>,
    .layer_norm_backward_input = layer_norm_backward_input<T>,
    .layer_norm_backward_weight = layer_norm_backward_weight<T>,
    .rms_norm = rms_norm<T>,
    .rms_norm_backward_input = rms_norm_backward_input<T>,
    .rms_norm_backward_weight = rms_norm_backward_weight<T>,
    .rotate = rotate<T>,
    .embed = embed<T>,
    .add = add<T>,
    .accumulate = accumulate<T>,
    .patches = patches<T>,
    .cross_entropy_row = cross_entropy_row<T>,
    .span_cross_entropy = span_cross_entropy<T>,
    .dropout = dropout<T>,
};

void axpby(float a, const float* x, float b, float* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) y[i] = a * x[i] + b * y[i];
}

double sum_squares(const float* x, Int n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

/// Adam's direction, of moments that it moves.
inline float adam_direction(const AdamWConstants& k, float gradient, float& m, float& v) {
  const float grad = gradient * k.grad_scale;
  m = k.beta1 * m + (1 - k.beta1) * grad;
  v = k.beta2 * v + (1 - k.beta2) * grad * grad;
  return m * k.correction1 / (__builtin_sqrtf(v) * k.correction2 + k.eps);
}

void adamw(const AdamWConstants& rule, float* w, float* m, float* v, const float* g, Int n) {
  const AdamWConstants k = rule;
#pragma omp simd
  for (Int i = 0; i < n; ++i) {
    const float update = adam_direction(k, g[i], m[i], v[i]);
    w[i] = w[i] - k.decay * w[i] - k.lr * update;
  }
}

void sgd(const SgdRule& rule, float* w, float* m, const float* g, Int n) {
  const SgdRule k = rule;
  const float kept = k.nesterov ? k.momentum : 1, direct = k.nesterov ? 1 : 0;
#pragma omp simd
  for (Int i = 0; i < n; ++i) {
    const float d = k.grad_scale * g[i] + k.decay * w[i];
    const float m1 = k.momentum * m[i] + k.fresh * d;
    m[i] = m1;
    w[i] = w[i] - k.lr * (direct * d + kept * m1);
  }
}

void lion(const LionRule& rule, float* w, float* m, const float* g, Int n) {
  const LionRule k = rule;
#pragma omp simd
  for (Int i = 0; i < n; ++i) {
    const float grad = k.grad_scale * g[i];
    const float c = k.beta1 * m[i] + (1 - k.beta1) * grad;
    const float sign = c > 0 ? 1.0F : c < 0 ? -1.0F : 0.0F;
    m[i] = k.beta2 * m[i] + (1 - k.beta2) * grad;
    w[i] = w[i] - k.lr * (sign + k.decay * w[i]);
  }
}

void lamb(const AdamWConstants& rule, const float* w, float* m, float* v, float* g, Int n) {
  const AdamWConstants k = rule;
#pragma omp simd
  for (Int i = 0; i < n; ++i) g[i] = adam_direction(k, g[i], m[i], v[i]) + k.decay * w[i];
}

void widen(const Bf16* x, float* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) y[i] = to_float(x[i]);
}

void cut(float* x, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) x[i] = to_float(rounded<Bf16>(x[i]));
}

}  // namespace

// Defined for the same instruction set in panel_attention.cc and attention_loops.cc.
extern const PanelAttention<float> CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA);
extern const AttentionLoops CONCERTINA_PASTE(attention_loops_, CONCERTINA_ISA);

extern const LoopTable CONCERTINA_PASTE(loops_, CONCERTINA_ISA);
const LoopTable CONCERTINA_PASTE(loops_, CONCERTINA_ISA) = {
    .f32 = kActivationLoops<float>,
    .bf16 = kActivationLoops<Bf16>,
    .attention_f32 = &CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA),
    .attention_bf16 = &CONCERTINA_PASTE(attention_loops_, CONCERTINA_ISA),
    .axpby = axpby,
    .sum_squares = sum_squares,
    .adamw = adamw,
    .sgd = sgd,
    .lion = lion,
    .lamb = lamb,
    .widen = widen,
    .cut = cut,
};

}  // namespace concertina::cpu
