// Optimizer updates.
#pragma once

#include "core/update_rules.h"

#define CONCERTINA_UPDATE_LOOPS(TYPED, FP32)                                              \
  FP32(void, adamw,                                                                       \
       (const AdamWConstants& rule, float* w, float* m, float* v, const float* g, Int n)) \
  FP32(void, sgd, (const SgdRule& rule, float* w, float* m, const float* g, Int n))       \
  FP32(void, lion, (const LionRule& rule, float* w, float* m, const float* g, Int n))     \
  FP32(void, lamb,                                                                        \
       (const AdamWConstants& rule, const float* w, float* m, float* v, float* g, Int n))

#ifdef CONCERTINA_LOOP_BODIES

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

/// Updates the moments, and returns Adam's direction.
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

/// Replaces g with the direction u of LAMB; lr is not used.
void lamb(const AdamWConstants& rule, const float* w, float* m, float* v, float* g, Int n) {
  const AdamWConstants k = rule;
#pragma omp simd
  for (Int i = 0; i < n; ++i) g[i] = adam_direction(k, g[i], m[i], v[i]) + k.decay * w[i];
}

}  // namespace
}  // namespace concertina::cpu

#endif
