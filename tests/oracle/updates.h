// Formulas of the optimizer kernels.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/oracle/values.h"

namespace concertina::oracle {

inline void issue(const SgdUpdate& op) {
  const SgdRule& rule = op.rule;
  const Values g = values_of(op.g);
  Out w(op.w), m(op.m);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double d = g[i] * rule.grad_scale + rule.decay * w[i];
    m[i] = rule.momentum * m[i] + rule.fresh * d;
    w[i] -= rule.lr * (rule.nesterov ? d + rule.momentum * m[i] : m[i]);
  }
}

inline void issue(const LionUpdate& op) {
  const LionRule& rule = op.rule;
  const double beta1 = rule.beta1, beta2 = rule.beta2;
  const Values g = values_of(op.g);
  Out w(op.w), m(op.m);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double grad = g[i] * rule.grad_scale, c = beta1 * m[i] + (1 - beta1) * grad;
    m[i] = beta2 * m[i] + (1 - beta2) * grad;
    w[i] -= rule.lr * ((c > 0) - (c < 0) + rule.decay * w[i]);
  }
}

inline void adamw(const AdamW& rule, Values& w, Values& m, Values& v, const Values& g) {
  const double beta1 = rule.beta1, beta2 = rule.beta2, lr = rule.lr;
  const double unbias1 = 1 - std::pow(beta1, static_cast<double>(rule.step));
  const double unbias2 = 1 - std::pow(beta2, static_cast<double>(rule.step));
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double grad = g[i] * rule.grad_scale;
    m[i] = beta1 * m[i] + (1 - beta1) * grad;
    v[i] = beta2 * v[i] + (1 - beta2) * grad * grad;
    w[i] = w[i] * (1 - lr * rule.weight_decay) -
           lr * (m[i] / unbias1) / (std::sqrt(v[i] / unbias2) + rule.eps);
  }
}

inline void issue(const AdamWUpdate& op) {
  Out w(op.w), m(op.m), v(op.v);
  adamw(op.rule, w, m, v, values_of(op.g));
}

inline void issue(const LambUpdate& op) {
  AdamW adam = op.rule.moments;
  adam.lr = 1;
  adam.weight_decay = 0;
  Out w(op.w), m(op.m), v(op.v), g(op.g);
  Values step(w.size());
  adamw(adam, step, m, v, g);
  double weights = 0, steps = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    g[i] = op.rule.moments.weight_decay * w[i] - step[i];
    weights += w[i] * w[i];
    steps += g[i] * g[i];
  }
  const bool adapts = op.rule.adapt && weights > 0 && steps > 0;
  const double rate = op.rule.moments.lr * (adapts ? std::sqrt(weights / steps) : 1);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * g[i];
}

inline void issue(const ScaleToUnit& op) {
  Out x(op.x);
  double sum = 0;
  for (const double value : x) sum += value * value;
  for (double& value : x) value /= std::max<double>(std::sqrt(sum), op.least);
}

inline void issue(const Shrink& op) {
  for (double& x : Out(op.x)) x = x > 0 ? std::max(x - op.by, 0.0) : std::min(x + op.by, 0.0);
}

inline void issue(const KeepZeros& op) {
  const Values w = values_of(op.w);
  Out x(op.x);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= w[i] == 0 ? 0 : 1;
}

inline void issue(const CopyColumns& op) {
  const Values x = values_of(op.x);
  Out y(op.y);
  for (Index r = 0; r < count_of(op.x) / op.x_columns; ++r)
    for (Index j = 0; j < op.columns; ++j)
      y[r * op.y_columns + op.first_y + j] = x[r * op.x_columns + op.first_x + j];
}

}  // namespace concertina::oracle
