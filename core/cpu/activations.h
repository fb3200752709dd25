// Activation functions (also in epilogues) and rotary embedding.
#pragma once

#define CONCERTINA_ACTIVATION_LOOPS(TYPED, FP32)                                              \
  TYPED(void, gelu, (const float* u, const float* bias, T* g, T* slope, Int rows, Int n))     \
  TYPED(void, gelu_erf, (const float* u, const float* bias, T* g, T* slope, Int rows, Int n)) \
  TYPED(void, gated_silu, (const T* u, T* y, Int rows, Int f))                                \
  TYPED(void, gated_silu_backward, (const T* dy, const T* u, T* du, Int rows, Int f))         \
  TYPED(void, relu, (const float* u, const float* bias, T* g, T* slope, Int rows, Int n))     \
  TYPED(void, silu, (const float* u, const float* bias, T* g, T* slope, Int rows, Int n))     \
  TYPED(void, scaled, (const T* x, const T* by, T* y, Int n))                                 \
  TYPED(void, hyperbolic_tangent, (const T* x, T* y, Int n))                                  \
  TYPED(void, hyperbolic_tangent_backward, (const T* dy, const T* y, T* dx, Int n))           \
  TYPED(void, rotate, (T * x, const float* table, Int heads, Int d, Int columns, bool inverse))

#ifdef CONCERTINA_LOOP_BODIES

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

/// 1 / (1 + e^-x). It keeps its relative accuracy near 0.
[[gnu::always_inline]] inline float sigmoid(float x) {
  const float e = exp_nonpositive(-__builtin_fabsf(x));
  return (x < 0 ? e : 1.0F) / (1.0F + e);
}

/// g[rows,n] = gelu(u[rows,n] + bias[n]), slope = gelu'(u + bias), in the tanh form (Hendrycks &
/// Gimpel 2016): 0.5 u (1 + tanh z) = u sigmoid(2 z), z = sqrt(2/pi) (u + 0.044715 u^3). Unlike
/// tanh near -1, the sigmoid keeps its relative accuracy.
template <class T>
void gelu(const float* u, const float* bias, T* g, T* slope, Int rows, Int n) {
  const float k2 = 2 * 0.797884560802865356F, cubic = 0.044715F;
  for (Int r = 0; r < rows; ++r, u += n, g += n, slope += n) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float x = u[i] + bias[i];
      const float square = x * x;
      const float z = k2 * x * (1.0F + cubic * square);
      const float e = exp_nonpositive(-__builtin_fabsf(z));
      const float s = (z < 0 ? e : 1.0F) / (1.0F + e);
      g[i] = rounded<T>(x * s);
      slope[i] = rounded<T>(s + x * s * (1.0F - s) * k2 * (1.0F + 3.0F * cubic * square));
    }
  }
}

/// Likewise for x Phi(x) (Hendrycks & Gimpel 2016). Phi(-a) = e^(-a^2 / 2) t P(t), t = 1 / (1 +
/// 0.27 a), the form of Abramowitz & Stegun, 7.1.26. P is a polynomial of degree 8, fitted at
/// Chebyshev points up to a = 13.3, where e^(-a^2 / 2) becomes denormal. For a < 1.5, where 1 - Phi
/// is large, Phi - 1/2 is also a polynomial. The error of Phi is within 1e-7; in its negative tail,
/// the relative error is within 6e-6.
template <class T>
void gelu_erf(const float* u, const float* bias, T* g, T* slope, Int rows, Int n) {
  for (Int r = 0; r < rows; ++r, u += n, g += n, slope += n) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float x = u[i] + bias[i];
      const float a = __builtin_fabsf(x);
      const float z = x * x;
      const float e = exp_nonpositive(-0.5F * z);
      float odd = 4.129777261169288e-7F * z - 8.728008719415903e-6F;
      odd = odd * z + 1.1438129507110687e-4F;
      odd = odd * z - 1.1865180532446957e-3F;
      odd = odd * z + 9.97325725080197e-3F;
      odd = odd * z - 6.64903381966251e-2F;
      odd = odd * z + 3.989422794413926e-1F;
      const float t = 1.0F / (1.0F + 0.27F * a);
      float p = 0.028935147048072873F * t - 0.1263972208855288F;
      p = p * t + 0.16967931808219494F;
      p = p * t - 0.06917150683260641F;
      p = p * t + 0.10785016271932323F;
      p = p * t + 0.07202098334273663F;
      p = p * t + 0.10182118862066611F;
      p = p * t + 0.10754118837842222F;
      p = p * t + 0.10772074997235374F;
      const float tail = e * (t * p);
      const float far = x < 0 ? tail : 1.0F - tail;
      const float phi = z < 2.25F ? 0.5F + x * odd : far;
      g[i] = rounded<T>(x * phi);
      slope[i] = rounded<T>(phi + x * (e * 0.39894228040143268F));
    }
  }
}

/// Likewise for max(x, 0).
template <class T>
void relu(const float* u, const float* bias, T* g, T* slope, Int rows, Int n) {
  for (Int r = 0; r < rows; ++r, u += n, g += n, slope += n) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float x = u[i] + bias[i];
      g[i] = rounded<T>(x > 0 ? x : 0.0F);
      slope[i] = rounded<T>(x > 0 ? 1.0F : 0.0F);
    }
  }
}

/// Likewise for x sigmoid(x).
template <class T>
void silu(const float* u, const float* bias, T* g, T* slope, Int rows, Int n) {
  for (Int r = 0; r < rows; ++r, u += n, g += n, slope += n) {
#pragma omp simd
    for (Int i = 0; i < n; ++i) {
      const float x = u[i] + bias[i], s = sigmoid(x);
      g[i] = rounded<T>(x * s);
      slope[i] = rounded<T>(s + x * s * (1.0F - s));
    }
  }
}

/// y[rows,f] = silu(u[:, :f]) u[:, f:] for u[rows,2f].
template <class T>
void gated_silu(const T* u, T* y, Int rows, Int f) {
  for (Int r = 0; r < rows; ++r, u += 2 * f, y += f) {
    const T *gate = u, *up = u + f;
#pragma omp simd
    for (Int i = 0; i < f; ++i) {
      const float x = to_float(gate[i]);
      y[i] = rounded<T>(x * sigmoid(x) * to_float(up[i]));
    }
  }
}

/// Computes du[rows,2f] from dy[rows,f]; du may alias u.
template <class T>
void gated_silu_backward(const T* dy, const T* u, T* du, Int rows, Int f) {
  for (Int r = 0; r < rows; ++r, dy += f, u += 2 * f, du += 2 * f) {
    const T *gate = u, *up = u + f;
    T *to_gate = du, *to_up = du + f;
#pragma omp simd
    for (Int i = 0; i < f; ++i) {
      const float x = to_float(gate[i]), v = to_float(up[i]), d = to_float(dy[i]);
      const float s = sigmoid(x);
      to_gate[i] = rounded<T>(d * v * (s + x * s * (1.0F - s)));
      to_up[i] = rounded<T>(d * (x * s));
    }
  }
}

/// y = tanh(x): a polynomial near 0 (Moshier's Cephes, tanhf.c), elsewhere from e^(-2 |x|).
template <class T>
void hyperbolic_tangent(const T* x, T* y, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i) {
    const float v = to_float(x[i]), z = v * v;
    float p = -5.70498872745e-3F * z + 2.06390887954e-2F;
    p = p * z - 5.37397155531e-2F;
    p = p * z + 1.33314422036e-1F;
    p = p * z - 3.33332819422e-1F;
    const float e = exp_nonpositive(-2.0F * __builtin_fabsf(v));
    const float far = __builtin_copysignf((1.0F - e) / (1.0F + e), v);
    y[i] = rounded<T>(z < 0.390625F ? v + v * z * p : far);
  }
}

/// dx = dy (1 - y^2).
template <class T>
void hyperbolic_tangent_backward(const T* dy, const T* y, T* dx, Int n) {
#pragma omp simd
  for (Int i = 0; i < n; ++i)
    dx[i] = rounded<T>(to_float(dy[i]) * (1.0F - to_float(y[i]) * to_float(y[i])));
}

/// y = x by; y may alias x.
template <class T>
void scaled(const T* x, const T* by, T* y, Int count) {
#pragma omp simd
  for (Int i = 0; i < count; ++i) y[i] = rounded<T>(to_float(x[i]) * to_float(by[i]));
}

/// Rotates the first columns of each of several contiguous heads of d elements by the angles in
/// `table`, which contains columns / 2 cosines, followed by columns / 2 sines.
template <class T>
void rotate(T* x, const float* table, Int heads, Int d, Int columns, bool inverse) {
  const Int half = columns / 2;
  const float *cosines = table, *sines = table + half;
  const float sign = inverse ? -1.0F : 1.0F;
  for (Int head = 0; head < heads; ++head, x += d) {
    T *low = x, *high = x + half;
#pragma omp simd
    for (Int i = 0; i < half; ++i) {
      const float a = to_float(low[i]), b = to_float(high[i]);
      const float cosine = cosines[i], sine = sign * sines[i];
      low[i] = rounded<T>(a * cosine - b * sine);
      high[i] = rounded<T>(b * cosine + a * sine);
    }
  }
}

}  // namespace
}  // namespace concertina::cpu

#endif
