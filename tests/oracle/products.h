// Formulas of linear maps, their activations, and attention.
//
// Legend as in core/ops.h: R rows, T tokens, C width, H heads, D head_dim, K heads of keys and
// values.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/oracle/elementwise.h"
#include "tests/oracle/values.h"

namespace concertina::oracle {

/// GELU in its tanh form (Hendrycks & Gimpel 2016), and its slope.
inline double gelu(double u) {
  const double a = std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u);
  return 0.5 * u * (1 + std::tanh(a));
}
inline double gelu_slope(double u) {
  const double c = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(c * (u + 0.044715 * u * u * u));
  return 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * c * (1 + 3 * 0.044715 * u * u);
}

/// GELU in its exact form, x Phi(x), and its slope.
inline double gelu_erf(double u) {
  return 0.5 * u * std::erfc(-u / std::numbers::sqrt2);
}
inline double gelu_erf_slope(double u) {
  return 0.5 * std::erfc(-u / std::numbers::sqrt2) +
         u * std::exp(-0.5 * u * u) / std::sqrt(2 * std::numbers::pi);
}

inline double relu(double u) {
  return std::max(u, 0.0);
}
inline double relu_slope(double u) {
  return u > 0 ? 1 : 0;
}

inline double silu(double u) {
  return u / (1 + std::exp(-u));
}
inline double silu_slope(double u) {
  const double s = 1 / (1 + std::exp(-u));
  return s + u * s * (1 - s);
}

struct Activation {
  double (*value)(double u) = nullptr;
  double (*slope)(double u) = nullptr;
};

inline Activation activation(Epilogue::Kind kind) {
  switch (kind) {
    case Epilogue::Kind::gelu:
      return {gelu, gelu_slope};
    case Epilogue::Kind::gelu_erf:
      return {gelu_erf, gelu_erf_slope};
    case Epilogue::Kind::relu:
      return {relu, relu_slope};
    case Epilogue::Kind::silu:
      return {silu, silu_slope};
    case Epilogue::Kind::none:
    case Epilogue::Kind::residual:
      break;
  }
  return {};
}

/// Returns the position of element [i, o] in the stored weight.
inline Index weight_at(const LinearShape& s, Index i, Index o) {
  return s.transposed ? o * s.in + i : i * s.out + o;
}

/// u[R,O] = x[R,I] W + bias[O] (may be empty).
inline Values linear(const LinearShape& s, const Values& x, const float* w, const Values& bias) {
  Values u;
  for (Index r = 0; r < s.rows; ++r)
    for (Index o = 0; o < s.out; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (Index i = 0; i < s.in; ++i) sum += x[r * s.in + i] * w[weight_at(s, i, o)];
      u.push_back(sum);
    }
  return u;
}

/// dx[R,I] = dy[R,O] W^T.
inline Values linear_backward_input(const LinearShape& s, const Values& dy, const float* w) {
  Values dx;
  for (Index r = 0; r < s.rows; ++r)
    for (Index i = 0; i < s.in; ++i) {
      double sum = 0;
      for (Index o = 0; o < s.out; ++o) sum += dy[r * s.out + o] * w[weight_at(s, i, o)];
      dx.push_back(sum);
    }
  return dx;
}

/// dweight and dbias[O] (each may be empty) from x[R,I] and dy[R,O].
inline void linear_backward_weight(const LinearShape& s, const LinearWeight& op) {
  const Values x = values_of(op.x), dy = values_of(op.dy);
  Out dw(op.dweight), dbias(op.dbias);
  for (Index i = 0; !dw.empty() && i < s.in; ++i)
    for (Index o = 0; o < s.out; ++o) {
      double sum = 0;
      for (Index r = 0; r < s.rows; ++r) sum += x[r * s.in + i] * dy[r * s.out + o];
      put(dw[weight_at(s, i, o)], sum, op.accumulate);
    }
  for (Index o = 0; !dbias.empty() && o < s.out; ++o) {
    double sum = 0;
    for (Index r = 0; r < s.rows; ++r) sum += dy[r * s.out + o];
    put(dbias[o], sum, op.accumulate);
  }
}

/// One head of one sample inside qkv[R,(H+2K)D] and y[R,HD].
struct Head {
  const AttentionShape& s;
  Index sample, head;
  const std::int32_t* lengths;  // may be null
  const DropoutMask& mask;

  /// Returns the factor of the probability of key j for query t: 0 if it is dropped.
  double factor(Index t, Index j) const {
    if (mask.share == 0) return 1;
    const Index e = (head * s.tokens + t) * ((s.tokens + 3) / 4 * 4) + j;
    return kept(Purpose::attention_dropout, mask, sample, e) ? 1 / (1 - mask.share) : 0;
  }
  /// part: 0 q, 1 k, 2 v.
  Index qkv(Index t, Index part, Index d) const {
    const Index first = part == 0
                            ? head * s.head_dim
                            : s.width() + (part - 1) * s.kv_width() + head / s.group() * s.head_dim;
    return (sample * s.tokens + t) * s.qkv_width() + first + d;
  }
  Index y(Index t, Index d) const {
    return (sample * s.tokens + t) * s.width() + head * s.head_dim + d;
  }
  Index length() const {
    return lengths == nullptr ? s.tokens : std::clamp<Index>(lengths[sample], 1, s.tokens);
  }
  /// Returns the number of keys that query t sees.
  Index seen(Index t) const { return s.causal ? std::min(t + 1, length()) : length(); }
};

/// Computes row t of softmax(mask(q k^T / sqrt(D))), and returns its log-sum-exp.
inline double probabilities(const Head& h, const Values& qkv, Index t, Values& p) {
  p.assign(h.seen(t), 0);
  for (Index j = 0; j < h.seen(t); ++j) {
    for (Index d = 0; d < h.s.head_dim; ++d) p[j] += qkv[h.qkv(t, 0, d)] * qkv[h.qkv(j, 1, d)];
    p[j] /= std::sqrt(static_cast<double>(h.s.head_dim));
  }
  const double most = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (const double score : p) sum += std::exp(score - most);
  const double lse = most + std::log(sum);
  for (double& score : p) score = std::exp(score - lse);
  return lse;
}

/// Calls f(head, t) for each row of scores.
template <class F>
void each_row(const AttentionShape& s, const std::int32_t* lengths, const DropoutMask& mask, F f) {
  for (Index b = 0; b < s.samples; ++b)
    for (Index head = 0; head < s.heads; ++head)
      for (Index t = 0; t < s.tokens; ++t) f(Head{s, b, head, lengths, mask}, t);
}

/// Computes y and lse from qkv; lengths[samples] may be null. The mask drops after the softmax.
inline void attention(const AttentionShape& s, const Values& qkv, const std::int32_t* lengths,
                      Values& y, Values& lse, const DropoutMask& mask = {}) {
  Values p;
  each_row(s, lengths, mask, [&](const Head& h, Index t) {
    lse[(h.sample * s.heads + h.head) * s.tokens + t] = probabilities(h, qkv, t, p);
    for (Index j = 0; j < h.seen(t); ++j) p[j] *= h.factor(t, j);
    for (Index d = 0; d < s.head_dim; ++d) {
      double& sum = y[h.y(t, d)] = 0;
      for (Index j = 0; j < h.seen(t); ++j) sum += p[j] * qkv[h.qkv(j, 2, d)];
    }
  });
}

/// Adds the keys and values of each row to the cache, and then computes y.
inline void cached_attention(const AttentionShape& s, const Values& qkv, const std::int32_t* starts,
                             Values& cache, Values& y) {
  Values p;
  each_row(s, nullptr, {}, [&](const Head& h, Index t) {
    const Index at = t - starts[h.sample * s.tokens + t], key_head = h.head / s.group();
    const auto cached = [&](Index part, Index key, Index d) -> double& {
      const Index head = (2 * h.sample + part) * s.kv() + key_head;
      return cache[(head * s.capacity + key) * s.head_dim + d];
    };
    for (Index d = 0; d < s.head_dim; ++d)
      for (const Index part : {0, 1}) cached(part, at, d) = qkv[h.qkv(t, 1 + part, d)];
    p.assign(at + 1, 0);
    double sum = 0;
    for (Index j = 0; j <= at; ++j) {
      for (Index d = 0; d < s.head_dim; ++d) p[j] += qkv[h.qkv(t, 0, d)] * cached(0, j, d);
      sum += p[j] = std::exp(p[j] / std::sqrt(static_cast<double>(s.head_dim)));
    }
    for (Index d = 0; d < s.head_dim; ++d) {
      double& out = y[h.y(t, d)] = 0;
      for (Index j = 0; j <= at; ++j) out += p[j] / sum * cached(1, j, d);
    }
  });
}

inline void attention_backward(const AttentionShape& s, const Values& dy, const Values& qkv,
                               const std::int32_t* lengths, Values& dqkv,
                               const DropoutMask& mask = {}) {
  const double scale = 1 / std::sqrt(static_cast<double>(s.head_dim));
  std::fill(dqkv.begin(), dqkv.end(), 0.0);
  Values p;
  each_row(s, lengths, mask, [&](const Head& h, Index t) {
    probabilities(h, qkv, t, p);
    Values dp(p.size());
    double mean = 0;  // of dp under p
    for (Index j = 0; j < h.seen(t); ++j) {
      const double factor = h.factor(t, j);
      for (Index d = 0; d < s.head_dim; ++d) {
        dp[j] += factor * dy[h.y(t, d)] * qkv[h.qkv(j, 2, d)];
        dqkv[h.qkv(j, 2, d)] += factor * p[j] * dy[h.y(t, d)];
      }
      mean += p[j] * dp[j];
    }
    for (Index j = 0; j < h.seen(t); ++j)
      for (Index d = 0; d < s.head_dim; ++d) {
        const double score_grad = p[j] * (dp[j] - mean) * scale;
        dqkv[h.qkv(t, 0, d)] += score_grad * qkv[h.qkv(j, 1, d)];
        dqkv[h.qkv(j, 1, d)] += score_grad * qkv[h.qkv(t, 0, d)];
      }
  });
}

}  // namespace concertina::oracle
