// The kernels of optimizers, by their formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/oracle/values.h"

namespace concertina::oracle {

template <class T>
void sgd(const SgdRule& rule, std::size_t count, T* w, T* m, const T* g) {
  const double momentum = rule.momentum;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = static_cast<double>(w[i]);
    const double d = static_cast<double>(g[i]) * static_cast<double>(rule.grad_scale) +
                     static_cast<double>(rule.decay) * weight;
    const double sum = momentum * static_cast<double>(m[i]) + static_cast<double>(rule.fresh) * d;
    m[i] = static_cast<T>(sum);
    w[i] = static_cast<T>(weight - static_cast<double>(rule.lr) *
                                       (rule.nesterov ? d + momentum * sum : sum));
  }
}

template <class T>
void lion(const LionRule& rule, std::size_t count, T* w, T* m, const T* g) {
  const double beta1 = rule.beta1, beta2 = rule.beta2;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = static_cast<double>(w[i]), old = static_cast<double>(m[i]);
    const double grad = static_cast<double>(g[i]) * static_cast<double>(rule.grad_scale);
    const double c = beta1 * old + (1 - beta1) * grad;
    m[i] = static_cast<T>(beta2 * old + (1 - beta2) * grad);
    w[i] =
        static_cast<T>(weight - static_cast<double>(rule.lr) *
                                    ((c > 0) - (c < 0) + static_cast<double>(rule.decay) * weight));
  }
}

template <class T>
void adamw(const AdamW& rule, std::size_t count, T* w, T* m, T* v, const T* g) {
  const double beta1 = rule.beta1, beta2 = rule.beta2, lr = rule.lr;
  const double unbias1 = 1 - std::pow(beta1, static_cast<double>(rule.step));
  const double unbias2 = 1 - std::pow(beta2, static_cast<double>(rule.step));
  for (std::size_t i = 0; i < count; ++i) {
    const double grad = static_cast<double>(g[i]) * static_cast<double>(rule.grad_scale);
    const double mean = beta1 * static_cast<double>(m[i]) + (1 - beta1) * grad;
    const double square = beta2 * static_cast<double>(v[i]) + (1 - beta2) * grad * grad;
    const double decayed =
        static_cast<double>(w[i]) * (1 - lr * static_cast<double>(rule.weight_decay));
    w[i] =
        static_cast<T>(decayed - lr * (mean / unbias1) /
                                     (std::sqrt(square / unbias2) + static_cast<double>(rule.eps)));
    m[i] = static_cast<T>(mean);
    v[i] = static_cast<T>(square);
  }
}

template <class T>
void lamb(const LambRule& rule, std::size_t count, T* w, T* m, T* v, T* g) {
  AdamW adam = rule.moments;
  adam.lr = 1;
  adam.weight_decay = 0;
  std::vector<double> direction(count), first(m, m + count), second(v, v + count),
      gradient(g, g + count);
  adamw(adam, count, direction.data(), first.data(), second.data(), gradient.data());
  double weights = 0, steps = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto weight = static_cast<double>(w[i]);
    m[i] = static_cast<T>(first[i]);
    v[i] = static_cast<T>(second[i]);
    direction[i] = static_cast<double>(rule.moments.weight_decay) * weight - direction[i];
    g[i] = static_cast<T>(direction[i]);
    weights += weight * weight;
    steps += direction[i] * direction[i];
  }
  const bool adapts = rule.adapt && weights > 0 && steps > 0;
  const double rate =
      static_cast<double>(rule.moments.lr) * (adapts ? std::sqrt(weights / steps) : 1);
  for (std::size_t i = 0; i < count; ++i)
    w[i] = static_cast<T>(static_cast<double>(w[i]) - rate * direction[i]);
}

inline void issue(const AdamWUpdate& op) {
  adamw(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.v.f32(), op.g.f32());
}

inline void issue(const SgdUpdate& op) {
  sgd(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.g.f32());
}

inline void issue(const LionUpdate& op) {
  lion(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.g.f32());
}

inline void issue(const LambUpdate& op) {
  lamb(op.rule, op.w.count, op.w.f32(), op.m.f32(), op.v.f32(), op.g.f32());
}

inline void issue(const ScaleToUnit& op) {
  double sum = 0;
  for (const float x : to_floats(op.x)) sum += static_cast<double>(x) * static_cast<double>(x);
  const double norm = std::max(std::sqrt(sum), static_cast<double>(op.least));
  for (std::size_t i = 0; i < op.x.count; ++i)
    op.x.f32()[i] = static_cast<float>(static_cast<double>(op.x.f32()[i]) / norm);
}

inline void issue(const CopyColumns& op) {
  const std::int64_t rows = static_cast<std::int64_t>(op.x.count) / op.x_columns;
  const std::vector<float> in = to_floats(op.x);
  Out out(op.y);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < op.columns; ++j)
      out[static_cast<std::size_t>(r * op.y_columns + op.first_y + j)] =
          in[static_cast<std::size_t>(r * op.x_columns + op.first_x + j)];
}

}  // namespace concertina::oracle
