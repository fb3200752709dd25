// Fused loops between the products; compiled once for each instruction set (kernels.h).
#include "core/cpu/kernels.h"
#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

using Int = std::int64_t;

constexpr float kNormEps = 1e-5F;

// GELU, tanh form (Hendrycks & Gimpel 2016): 0.5 u (1 + tanh z) = u sigmoid(2 z),
// z = sqrt(2/pi) (u + 0.044715 u^3). The sigmoid keeps its relative accuracy where tanh is near -1.
void gelu(float* u, const float* bias, float* g, Int rows, Int n) {
  const float k2 = 2 * 0.797884560802865356F, cubic = 0.044715F;
  for (Int r = 0; r < rows; ++r, u += n, g += n) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float x = u[i] + bias[i];
      const float square = x * x;
      const float z = k2 * x * (1.0F + cubic * square);
      const float e = exp_nonpositive(-__builtin_fabsf(z));
      const float s = (z < 0 ? e : 1.0F) / (1.0F + e);
      g[i] = x * s;
      u[i] = s + x * s * (1.0F - s) * k2 * (1.0F + 3.0F * cubic * square);
    }
  }
}

void bias_residual(float* y, const float* bias, const float* residual, Int rows, Int n) {
  for (Int r = 0; r < rows; ++r, y += n, residual += n) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) y[i] += bias[i] + residual[i];
  }
}

void bias(float* y, const float* b, Int rows, Int n) {
  for (Int r = 0; r < rows; ++r, y += n) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) y[i] += b[i];
  }
}

void multiply(float* y, const float* x, Int count) {
#pragma omp simd
  for (Int i = 0; i < count; ++i) y[i] *= x[i];
}

// Four rows a pass: a quarter of the loads and stores of `out`, and a shorter chain of roundings.
void column_sum(const float* a, Int rows, Int stride, Int n, float* out, bool accumulate) {
  if (!accumulate) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) out[i] = 0;
  }
  Int r = 0;
  for (; r + 4 <= rows; r += 4, a += 4 * stride) {
    const float *a1 = a + stride, *a2 = a1 + stride, *a3 = a2 + stride;
#pragma omp simd
    for (Int i = 0; i < n; ++i) out[i] += (a[i] + a1[i]) + (a2[i] + a3[i]);
  }
  for (; r < rows; ++r, a += stride) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) out[i] += a[i];
  }
}

void layer_norm(const float* x, const float* gamma, const float* beta, float* y, float* mean,
                float* rstd, Int rows, Int c) {
  for (Int r = 0; r < rows; ++r, x += c, y += c) {
    float sum = 0, square = 0;
#pragma omp simd reduction(+ : sum)
    for (Int i = 0; i < c; ++i) sum += x[i];
    const float m = sum / static_cast<float>(c);
#pragma omp simd reduction(+ : square)
    for (Int i = 0; i < c; ++i) square += (x[i] - m) * (x[i] - m);
    const float s = 1.0F / __builtin_sqrtf(square / static_cast<float>(c) + kNormEps);
#pragma omp simd
    for (Int i = 0; i < c; ++i) y[i] = (x[i] - m) * s * gamma[i] + beta[i];
    mean[r] = m;
    rstd[r] = s;
  }
}

// dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma (Ba et al. 2016).
void layer_norm_backward_input(const float* dy, const float* x, const float* gamma,
                               const float* mean, const float* rstd, const float* residual,
                               float* dx, Int rows, Int c) {
  for (Int r = 0; r < rows; ++r, dy += c, x += c, dx += c) {
    const float m = mean[r], s = rstd[r];
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (Int i = 0; i < c; ++i) {
      const float g = dy[i] * gamma[i];
      sum += g;
      dot += g * (x[i] - m);
    }
    const float a = sum / static_cast<float>(c);
    const float b = dot * s * s / static_cast<float>(c);
    if (residual != nullptr) {
#pragma omp simd
      for (Int i = 0; i < c; ++i) dx[i] = residual[i] + s * (dy[i] * gamma[i] - a - (x[i] - m) * b);
      residual += c;
    } else {
#pragma omp simd
      for (Int i = 0; i < c; ++i) dx[i] = s * (dy[i] * gamma[i] - a - (x[i] - m) * b);
    }
  }
}

void layer_norm_backward_weight(const float* dy, const float* x, const float* mean,
                                const float* rstd, float* dgamma, float* dbeta, Int rows, Int c,
                                Int n, bool accumulate) {
  if (!accumulate) {
    for (Int i = 0; i < n; ++i) dgamma[i] = dbeta[i] = 0;
  }
  Int r = 0;
  for (; r + 2 <= rows; r += 2, dy += 2 * c, x += 2 * c) {
    const float m0 = mean[r], s0 = rstd[r], m1 = mean[r + 1], s1 = rstd[r + 1];
    const float *dy1 = dy + c, *x1 = x + c;
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      dgamma[i] += dy[i] * ((x[i] - m0) * s0) + dy1[i] * ((x1[i] - m1) * s1);
      dbeta[i] += dy[i] + dy1[i];
    }
  }
  for (; r < rows; ++r) {
    const float m0 = mean[r], s0 = rstd[r];
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      dgamma[i] += dy[i] * ((x[i] - m0) * s0);
      dbeta[i] += dy[i];
    }
  }
}

void add(const float* a, const float* b, float* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

void axpby(float a, const float* x, float b, float* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) y[i] = a * x[i] + b * y[i];
}

float cross_entropy_row(float* logits, Int v, Int target, float scale, bool training) {
  if (target < 0) {
    if (training)
      for (Int i = 0; i < v; ++i) logits[i] = 0;
    return 0;
  }
  float top = logits[0], sum = 0;
#pragma omp simd reduction(max : top)
  for (Int i = 0; i < v; ++i) top = top > logits[i] ? top : logits[i];
#pragma omp simd reduction(+ : sum)
  for (Int i = 0; i < v; ++i) sum += exp_nonpositive(logits[i] - top);
  const float loss = top + __builtin_logf(sum) - logits[target];
  if (training) {
    const float factor = scale / sum;
#pragma omp simd
    for (Int i = 0; i < v; ++i) logits[i] = factor * exp_nonpositive(logits[i] - top);
    logits[target] -= scale;
  }
  return loss;
}

double sum_squares(const float* x, Int n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (Int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

void adamw(const AdamWRule& rule, float* w, float* m, float* v, const float* g, Int n) {
  const AdamWRule k = rule;
#pragma omp simd
  for (Int i = 0; i < n; ++i) {
    const float grad = g[i] * k.grad_scale;
    const float m1 = k.beta1 * m[i] + (1 - k.beta1) * grad;
    const float v1 = k.beta2 * v[i] + (1 - k.beta2) * grad * grad;
    m[i] = m1;
    v[i] = v1;
    const float update = m1 * k.correction1 / (__builtin_sqrtf(v1) * k.correction2 + k.eps);
    w[i] = w[i] - k.decay * w[i] - k.lr * update;
  }
}

}  // namespace

// Defined in attention.cc for the same instruction set.
std::size_t CONCERTINA_PASTE(attention_scratch_, CONCERTINA_ISA)(const HeadShape&, bool);
void CONCERTINA_PASTE(attention_forward_, CONCERTINA_ISA)(const HeadShape&, const float*,
                                                          const float*, const float*, float*,
                                                          float*, void*);
void CONCERTINA_PASTE(attention_backward_, CONCERTINA_ISA)(const HeadShape&, const float*,
                                                           const float*, const float*, const float*,
                                                           const float*, const float*, float*,
                                                           float*, float*, void*);

extern const LoopTable CONCERTINA_PASTE(loops_, CONCERTINA_ISA);
const LoopTable CONCERTINA_PASTE(loops_, CONCERTINA_ISA) = {
    .gelu = gelu,
    .bias_residual = bias_residual,
    .bias = bias,
    .multiply = multiply,
    .column_sum = column_sum,
    .layer_norm = layer_norm,
    .layer_norm_backward_input = layer_norm_backward_input,
    .layer_norm_backward_weight = layer_norm_backward_weight,
    .add = add,
    .axpby = axpby,
    .cross_entropy_row = cross_entropy_row,
    .sum_squares = sum_squares,
    .adamw = adamw,
    .attention_scratch = CONCERTINA_PASTE(attention_scratch_, CONCERTINA_ISA),
    .attention_forward = CONCERTINA_PASTE(attention_forward_, CONCERTINA_ISA),
    .attention_backward = CONCERTINA_PASTE(attention_backward_, CONCERTINA_ISA),
};

}  // namespace concertina::cpu
