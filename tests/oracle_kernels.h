// Every kernel of core/backend.h in plain loops with double accumulation: the definition that
// backends are held against. T is float (OracleBackend) or double (finite differences).
// Invariant: straight from the formulas; nothing is fused, blocked or recomputed cleverly.
//
// Legend as in core/ops.h: R rows, T tokens, C width, H heads, D head_dim, K heads of keys and
// values, V vocabulary.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "core/backend.h"

namespace concertina::oracle {

using Index = std::int64_t;

/// Stores `sum`, added to what is there if `accumulate`.
template <class T>
void put(T& to, double sum, bool accumulate) {
  to = static_cast<T>(accumulate ? static_cast<double>(to) + sum : sum);
}

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

/// lengths[samples] may be null.
template <class T>
void attention(const AttentionShape& s, const T* qkv, const std::int32_t* lengths, T* y, T* lse) {
  std::vector<double> p;
  for (Index b = 0; b < s.samples; ++b)
    for (Index head = 0; head < s.heads; ++head)
      for (Index t = 0; t < s.tokens; ++t) {
        const Head h{s, b, head, lengths};
        lse[(b * s.heads + head) * s.tokens + t] = static_cast<T>(probabilities(h, qkv, t, p));
        for (Index d = 0; d < s.head_dim; ++d) {
          double sum = 0;
          for (Index j = 0; j < h.seen(t); ++j)
            sum += p[static_cast<std::size_t>(j)] * static_cast<double>(qkv[h.qkv(j, 2, d)]);
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
    double dot = 0;
    for (Index d = 0; d < h.s.head_dim; ++d) {
      dot += static_cast<double>(dy[h.y(t, d)]) * static_cast<double>(qkv[h.qkv(j, 2, d)]);
      dqkv[h.qkv(j, 2, d)] += p[static_cast<std::size_t>(j)] * static_cast<double>(dy[h.y(t, d)]);
    }
    dp.push_back(dot);
    mean += p[static_cast<std::size_t>(j)] * dot;
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
                        const std::int32_t* lengths, T* dqkv) {
  std::vector<double> sums(static_cast<std::size_t>(s.samples * s.tokens * s.qkv_width()));
  for (Index b = 0; b < s.samples; ++b)
    for (Index head = 0; head < s.heads; ++head) {
      const Head h{s, b, head, lengths};
      for (Index t = 0; t < s.tokens; ++t) attention_row_backward(h, dy, qkv, t, sums.data());
    }
  for (std::size_t i = 0; i < sums.size(); ++i) dqkv[i] = static_cast<T>(sums[i]);
}

template <class T>
void layer_norm(Index rows, Index width, const T* x, const T* gamma, const T* beta, double eps,
                T* y, T* mean, T* rstd) {
  for (Index r = 0; r < rows; ++r) {
    double sum = 0, squares = 0;
    for (Index c = 0; c < width; ++c) sum += static_cast<double>(x[r * width + c]);
    const double m = sum / static_cast<double>(width);
    for (Index c = 0; c < width; ++c)
      squares += std::pow(static_cast<double>(x[r * width + c]) - m, 2);
    const double s = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (Index c = 0; c < width; ++c)
      y[r * width + c] = static_cast<T>((static_cast<double>(x[r * width + c]) - m) * s *
                                            static_cast<double>(gamma[c]) +
                                        static_cast<double>(beta[c]));
    mean[r] = static_cast<T>(m);
    rstd[r] = static_cast<T>(s);
  }
}

/// residual_grad may be null.
template <class T>
void layer_norm_backward_input(Index rows, Index width, const T* dy, const T* x, const T* gamma,
                               const T* mean, const T* rstd, const T* residual_grad, T* dx) {
  const auto n = static_cast<double>(width);
  for (Index r = 0; r < rows; ++r) {
    const auto m = static_cast<double>(mean[r]), s = static_cast<double>(rstd[r]);
    const auto xhat = [&](Index c) { return (static_cast<double>(x[r * width + c]) - m) * s; };
    const auto dxhat = [&](Index c) {
      return static_cast<double>(dy[r * width + c]) * static_cast<double>(gamma[c]);
    };
    double sum = 0, dot = 0;
    for (Index c = 0; c < width; ++c) {
      sum += dxhat(c);
      dot += dxhat(c) * xhat(c);
    }
    for (Index c = 0; c < width; ++c) {  // one element at a time: dx may be dy
      const double grad = s * (dxhat(c) - sum / n - xhat(c) * dot / n);
      const double skip =
          residual_grad == nullptr ? 0 : static_cast<double>(residual_grad[r * width + c]);
      dx[r * width + c] = static_cast<T>(skip + grad);
    }
  }
}

template <class T>
void layer_norm_backward_weight(Index rows, Index width, const T* dy, const T* x, const T* mean,
                                const T* rstd, T* dgamma, T* dbeta, bool accumulate) {
  for (Index c = 0; c < width; ++c) {
    double gamma_sum = 0, beta_sum = 0;
    for (Index r = 0; r < rows; ++r) {
      const auto grad = static_cast<double>(dy[r * width + c]);
      gamma_sum += grad * (static_cast<double>(x[r * width + c]) - static_cast<double>(mean[r])) *
                   static_cast<double>(rstd[r]);
      beta_sum += grad;
    }
    put(dgamma[c], gamma_sum, accumulate);
    put(dbeta[c], beta_sum, accumulate);
  }
}

/// Rows of one table that are added to x: row r is row_of(r) of table[.,C].
template <class T, class F>
void add_table_rows(Index rows, Index width, const T* table, const F& row_of, double* x) {
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < width; ++c)
      x[r * width + c] += static_cast<double>(table[row_of(r) * width + c]);
}

/// The gradient of such a table.
template <class T, class G, class F>
void sum_table_rows(Index rows, Index width, Index table_rows, const G* dx, const F& row_of,
                    T* dtable, bool accumulate) {
  for (Index c = 0; c < width; ++c) {
    std::vector<double> sums(static_cast<std::size_t>(table_rows));
    for (Index r = 0; r < rows; ++r)
      sums[static_cast<std::size_t>(row_of(r))] += static_cast<double>(dx[r * width + c]);
    for (Index v = 0; v < table_rows; ++v)
      put(dtable[v * width + c], sums[static_cast<std::size_t>(v)], accumulate);
  }
}

/// y = residual (may be null) + what is kept of u, scaled.
template <class T>
void dropout(const DropoutMask& mask, Index count, const T* u, const T* residual, T* y) {
  const Rng rng(mask.at.seed, Purpose::dropout);
  for (Index i = 0; i < count; ++i) {
    const auto sample = static_cast<std::uint32_t>(i / mask.sample_elements);
    const Index e = i % mask.sample_elements;
    const std::uint32_t word =
        rng.words(mask.at.step, mask.at.sample + sample, mask.at.unit,
                  static_cast<std::uint32_t>(e / 4))[static_cast<std::size_t>(e % 4)];
    const bool kept = static_cast<double>(word) >= std::floor(mask.share * 0x1p32);
    const double skip = residual == nullptr ? 0 : static_cast<double>(residual[i]);
    y[i] = static_cast<T>(skip + (kept ? static_cast<double>(u[i]) / (1 - mask.share) : 0));
  }
}

template <class T>
void cross_entropy(Index rows, Index vocabulary, T* logits, const std::int32_t* targets,
                   double loss_scale, bool training, T* row_loss) {
  for (Index r = 0; r < rows; ++r) {
    T* row = logits + r * vocabulary;
    const auto most = static_cast<double>(*std::max_element(row, row + vocabulary));
    double sum = 0;
    for (Index v = 0; v < vocabulary; ++v) sum += std::exp(static_cast<double>(row[v]) - most);
    const double lse = most + std::log(sum);
    const bool valid = targets[r] >= 0;
    row_loss[r] = static_cast<T>(valid ? lse - static_cast<double>(row[targets[r]]) : 0);
    for (Index v = 0; training && v < vocabulary; ++v) {
      const double p = std::exp(static_cast<double>(row[v]) - lse);
      row[v] = static_cast<T>(valid ? (p - (v == targets[r] ? 1 : 0)) * loss_scale : 0);
    }
  }
}

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
  oracle::adamw(adam, count, direction.data(), first.data(), second.data(), gradient.data());
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

}  // namespace concertina::oracle
