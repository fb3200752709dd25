// Linear maps, the activations that follow one, and attention, by their formulas.
//
// Legend as in core/ops.h: R rows, T tokens, C width, H heads, D head_dim, K heads of keys and
// values.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/operators.h"
#include "core/rng.h"
#include "tests/oracle/values.h"

namespace concertina::oracle {

/// GELU, tanh form (Hendrycks & Gimpel 2016), and its slope.
inline double gelu(double u) {
  const double a = std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u);
  return 0.5 * u * (1 + std::tanh(a));
}
inline double gelu_slope(double u) {
  const double c = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(c * (u + 0.044715 * u * u * u));
  return 0.5 * (1 + t) + 0.5 * u * (1 - t * t) * c * (1 + 3 * 0.044715 * u * u);
}

/// GELU, x Phi(x), and its slope.
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

/// Element [i, o] of the stored weight.
inline Index weight_at(const LinearShape& s, Index i, Index o) {
  return s.transposed ? o * s.in + i : i * s.out + o;
}

/// u[R,O] = x[R,I] W + bias[O] (may be null).
template <class T>
void linear(const LinearShape& s, const T* x, const T* w, const T* bias, double* u) {
  for (Index r = 0; r < s.rows; ++r)
    for (Index o = 0; o < s.out; ++o) {
      double sum = bias == nullptr ? 0 : static_cast<double>(bias[o]);
      for (Index i = 0; i < s.in; ++i)
        sum += static_cast<double>(x[r * s.in + i]) * static_cast<double>(w[weight_at(s, i, o)]);
      u[r * s.out + o] = sum;
    }
}

/// dx[R,I] = dy[R,O] W^T.
template <class T>
void linear_backward_input(const LinearShape& s, const T* dy, const T* w, double* dx) {
  for (Index r = 0; r < s.rows; ++r)
    for (Index i = 0; i < s.in; ++i) {
      double sum = 0;
      for (Index o = 0; o < s.out; ++o)
        sum += static_cast<double>(dy[r * s.out + o]) * static_cast<double>(w[weight_at(s, i, o)]);
      dx[r * s.in + i] = sum;
    }
}

/// dw and dbias[O] (may be null) from x[R,I] and dy[R,O].
template <class T>
void linear_backward_weight(const LinearShape& s, const T* x, const T* dy, T* dw, T* dbias,
                            bool accumulate) {
  for (Index i = 0; dw != nullptr && i < s.in; ++i)
    for (Index o = 0; o < s.out; ++o) {
      double sum = 0;
      for (Index r = 0; r < s.rows; ++r)
        sum += static_cast<double>(x[r * s.in + i]) * static_cast<double>(dy[r * s.out + o]);
      put(dw[weight_at(s, i, o)], sum, accumulate);
    }
  for (Index o = 0; dbias != nullptr && o < s.out; ++o) {
    double sum = 0;
    for (Index r = 0; r < s.rows; ++r) sum += static_cast<double>(dy[r * s.out + o]);
    put(dbias[o], sum, accumulate);
  }
}

/// One head of one sample inside qkv[R,(H+2K)D] and y[R,HD].
struct Head {
  const AttentionShape& s;
  Index sample, head;
  const std::int32_t* lengths;  // may be null
  const DropoutMask& mask;

  /// The factor of the probability of key j for query t: 0 where it is dropped.
  double kept(Index t, Index j) const {
    if (mask.share == 0) return 1;
    const Index e = (head * s.tokens + t) * ((s.tokens + 3) / 4 * 4) + j;
    const std::uint32_t word =
        Rng(mask.at.seed, Purpose::attention_dropout)
            .words(mask.at.step, mask.at.sample + static_cast<std::uint32_t>(sample), mask.at.unit,
                   static_cast<std::uint32_t>(e / 4))[static_cast<std::size_t>(e % 4)];
    return static_cast<double>(word) < std::floor(mask.share * 0x1p32) ? 0 : 1 / (1 - mask.share);
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
  /// The number of keys that query t sees.
  Index seen(Index t) const { return s.causal ? std::min(t + 1, length()) : length(); }
};

/// Row t of softmax(mask(q k^T / sqrt(D))) and its log-sum-exp.
template <class T>
double probabilities(const Head& h, const T* qkv, Index t, std::vector<double>& p) {
  p.assign(static_cast<std::size_t>(h.seen(t)), 0);
  for (Index j = 0; j < h.seen(t); ++j) {
    double dot = 0;
    for (Index d = 0; d < h.s.head_dim; ++d)
      dot += static_cast<double>(qkv[h.qkv(t, 0, d)]) * static_cast<double>(qkv[h.qkv(j, 1, d)]);
    p[static_cast<std::size_t>(j)] = dot / std::sqrt(static_cast<double>(h.s.head_dim));
  }
  const double most = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (const double score : p) sum += std::exp(score - most);
  const double lse = most + std::log(sum);
  for (double& score : p) score = std::exp(score - lse);
  return lse;
}

/// lengths[samples] may be null. The mask drops probabilities after the softmax.
template <class T>
void attention(const AttentionShape& s, const T* qkv, const std::int32_t* lengths, T* y, T* lse,
               const DropoutMask& mask = {}) {
  std::vector<double> p;
  for (Index b = 0; b < s.samples; ++b)
    for (Index head = 0; head < s.heads; ++head)
      for (Index t = 0; t < s.tokens; ++t) {
        const Head h{s, b, head, lengths, mask};
        lse[(b * s.heads + head) * s.tokens + t] = static_cast<T>(probabilities(h, qkv, t, p));
        for (Index d = 0; d < s.head_dim; ++d) {
          double sum = 0;
          for (Index j = 0; j < h.seen(t); ++j)
            sum += h.kept(t, j) * p[static_cast<std::size_t>(j)] *
                   static_cast<double>(qkv[h.qkv(j, 2, d)]);
          y[h.y(t, d)] = static_cast<T>(sum);
        }
      }
}

/// Adds what row t of one head contributes to dqkv (double, zeroed by the caller).
template <class T>
void attention_row_backward(const Head& h, const T* dy, const T* qkv, Index t, double* dqkv) {
  const double scale = 1 / std::sqrt(static_cast<double>(h.s.head_dim));
  std::vector<double> p, dp;
  probabilities(h, qkv, t, p);
  double mean = 0;  // of dp under p
  for (Index j = 0; j < h.seen(t); ++j) {
    const double kept = h.kept(t, j);
    double dot = 0;
    for (Index d = 0; d < h.s.head_dim; ++d) {
      const auto grad = static_cast<double>(dy[h.y(t, d)]);
      dot += grad * static_cast<double>(qkv[h.qkv(j, 2, d)]);
      dqkv[h.qkv(j, 2, d)] += kept * p[static_cast<std::size_t>(j)] * grad;
    }
    dp.push_back(kept * dot);
    mean += p[static_cast<std::size_t>(j)] * kept * dot;
  }
  for (Index j = 0; j < h.seen(t); ++j) {
    const auto at = static_cast<std::size_t>(j);
    const double score_grad = p[at] * (dp[at] - mean) * scale;
    for (Index d = 0; d < h.s.head_dim; ++d) {
      dqkv[h.qkv(t, 0, d)] += score_grad * static_cast<double>(qkv[h.qkv(j, 1, d)]);
      dqkv[h.qkv(j, 1, d)] += score_grad * static_cast<double>(qkv[h.qkv(t, 0, d)]);
    }
  }
}

template <class T>
void attention_backward(const AttentionShape& s, const T* dy, const T* qkv,
                        const std::int32_t* lengths, T* dqkv, const DropoutMask& mask = {}) {
  std::vector<double> sums(static_cast<std::size_t>(s.samples * s.tokens * s.qkv_width()));
  for (Index b = 0; b < s.samples; ++b)
    for (Index head = 0; head < s.heads; ++head) {
      const Head h{s, b, head, lengths, mask};
      for (Index t = 0; t < s.tokens; ++t) attention_row_backward(h, dy, qkv, t, sums.data());
    }
  for (std::size_t i = 0; i < sums.size(); ++i) dqkv[i] = static_cast<T>(sums[i]);
}

}  // namespace concertina::oracle
