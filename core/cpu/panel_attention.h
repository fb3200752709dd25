// Causal attention of one head, tiled by rows of queries; included by the per-ISA sources alone.
// What the mask hides is skipped by strips of queries: those of [.., i1) meet keys [0, i1) only.
// The probabilities are never kept: the backward pass recomputes them from log-sum-exp
// (FlashAttention, Dao et al. 2022).
//
// A `Format` has, beside what panel_packing.h wants, the loops over scores. They leave their
// results, words of elements, in the place of the scores: probabilities and score gradients by
// query, and in the backward pass both by key, where a word joins the queries of one step.
//
// Legend: T tokens, D head dimension, P = D padded to whole vectors, N = T padded likewise.
#pragma once

#include "core/cpu/attention_rows.h"
#include "core/cpu/kernels.h"
#include "core/cpu/panel_packing.h"

namespace concertina::cpu {
namespace {

constexpr Int kQueryTile = 64, kStrip = 32;

// Neighbouring rows of scores of one strip, as many as a word has elements or what is left: the
// first sees `valid` keys, each next one more. Results are zero up to `keys`, all that the strip
// reads.
struct ScoreRows {
  float *s, *dp;  // scores; in the backward pass, gradients of the probabilities
  Int stride, rows, valid, keys;
  float scale;
};

// Rows of scores lie this far apart: never a power of two, or they would evict each other from L1.
Int score_stride(Int n) {
  return n + kLanes;
}

template <class Format>
std::size_t scratch(const HeadShape& shape, bool backward) {
  const Int n = padded(shape.tokens), p = padded(shape.head_dim);
  const Int transposed = words<Format>(shape.head_dim) * n, rows = words<Format>(shape.tokens) * p;
  const Int scores = score_stride(n),
            count = backward
                        ? 2 * transposed + 3 * rows + 2 * shape.tokens * p + 2 * kQueryTile * scores
                        : transposed + rows + kStrip * scores;
  return static_cast<std::size_t>(count + kStrip * p + 16 * 16) * sizeof(float);
}

template <class Format>
void store_rows(const float* from, Int from_stride, typename Format::Element* to, Int to_stride,
                Int rows, Int d) {
  for (Int i = 0; i < rows; ++i) Format::store(from + i * from_stride, 1.0F, to + i * to_stride, d);
}

template <class Format, class T = typename Format::Element>
void forward(const HeadShape& shape, const T* q, const T* k, const T* v, T* y, float* lse,
             void* memory) {
  using Word = typename Format::Word;
  const Int t = shape.tokens, d = shape.head_dim, n = padded(t), p = padded(d);
  const Int ld = score_stride(n);
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(d));
  prefetch<T>({k, shape.stride}, t, d);
  prefetch<T>({v, shape.stride}, t, d);
  prefetch<T>({q, shape.stride}, t, d);
  Cutter cut{static_cast<float*>(memory)};
  const auto kt = pack_transposed<Format>({k, shape.stride}, t, d, n, cut);  // [D,N]
  const auto values = pack_rows<Format>({v, shape.stride}, t, d, cut);       // [T,P]
  float* s = cut.take(kStrip * ld);                                          // [queries,N]
  float* out = cut.take(kStrip * p);                                         // [queries,P]
  for (Int i0 = 0; i0 < t; i0 += kStrip) {
    const Int i1 = at_most(i0 + kStrip, t), rows = i1 - i0;
    micro_gemm(rows, whole_panels(i1, n), words<Format>(d),
               left<Format>({q + i0 * shape.stride, shape.stride}), kt, s, ld, false);
    float top[kStrip], sum[kStrip];
    for (Int i = 0; i < rows; ++i)
      Format::softmax({s + i * ld, nullptr, ld, 1, i0 + i + 1, i1, scale}, top[i], sum[i]);
    for (Int i = 0; i < rows; ++i) lse[i0 + i] = top[i] + __builtin_logf(sum[i]);
    const Strided<Word> weights{reinterpret_cast<const Word*>(s), ld, 1};
    micro_gemm(rows, p, words<Format>(i1), weights, values, out, p, false);
    for (Int i = 0; i < rows; ++i)
      Format::store(out + i * p, 1.0F / sum[i], y + (i0 + i) * shape.width, d);
  }
}

template <class Format, class T = typename Format::Element>
class Backward {
 public:
  Backward(const HeadShape& shape, const T* q, const T* k, const T* v, const T* y, const T* dy,
           void* memory)
      : shape_(shape), q_(q), y_(y), dy_(dy), cut_{static_cast<float*>(memory)} {
    prefetch<T>({k, shape.stride}, t_, d_);
    prefetch<T>({v, shape.stride}, t_, d_);
    prefetch<T>({q, shape.stride}, t_, d_);
    prefetch<T>({dy, shape.width}, t_, d_);
    prefetch<T>({y, shape.width}, t_, d_);
    kt_ = pack_transposed<Format>({k, shape.stride}, t_, d_, n_, cut_);
    vt_ = pack_transposed<Format>({v, shape.stride}, t_, d_, n_, cut_);
    queries_ = pack_rows<Format>({q, shape.stride}, t_, d_, cut_);
    grads_ = pack_rows<Format>({dy, shape.width}, t_, d_, cut_);
    keys_ = pack_rows<Format>({k, shape.stride}, t_, d_, cut_);
    s_ = cut_.take(kQueryTile * ld_), dp_ = cut_.take(kQueryTile * ld_);
    sum_k_ = cut_.take(t_ * p_), sum_v_ = cut_.take(t_ * p_);
    out_ = cut_.take(kStrip * p_);
    for (Int i = 0; i < t_ * p_; ++i) sum_k_[i] = sum_v_[i] = 0;
  }

  void run(const float* lse, T* dq, T* dk, T* dv) {
    for (Int i0 = 0; i0 < t_; i0 += kQueryTile) {
      const Int rows = at_most(kQueryTile, t_ - i0);
      for (Int r = 0; r < rows; r += kStrip) strip(i0, r, at_most(r + kStrip, rows), lse, dq);
      key_sums(i0, rows);
    }
    store_rows<Format>(sum_k_, p_, dk, shape_.stride, t_, d_);
    store_rows<Format>(sum_v_, p_, dv, shape_.stride, t_, d_);
  }

 private:
  using Word = typename Format::Word;

  // Scores and their gradients of rows [r0, r1) of the tile at query i0, and dq.
  void strip(Int i0, Int r0, Int r1, const float* lse, T* dq) {
    const Int first = i0 + r0, end = i0 + r1, rows = r1 - r0, keys = whole_panels(end, n_);
    float *s = s_ + r0 * ld_, *dp = dp_ + r0 * ld_;
    const Rows<T> q{q_ + first * shape_.stride, shape_.stride};
    const Rows<T> dy{dy_ + first * shape_.width, shape_.width};
    micro_gemm(rows, keys, words<Format>(d_), left<Format>(q), kt_, s, ld_, false);
    micro_gemm(rows, keys, words<Format>(d_), left<Format>(dy), vt_, dp, ld_, false);
    for (Int i = 0; i < rows; i += Format::kElements) {
      const Int together = at_most(Format::kElements, rows - i);
      float delta[Format::kElements];
      for (Int j = 0; j < together; ++j)
        delta[j] = dot(dy.data + (i + j) * shape_.width, y_ + (first + i + j) * shape_.width, d_);
      Format::score_grads({s + i * ld_, dp + i * ld_, ld_, together, first + i + 1, end, scale_},
                          lse + first + i, delta);
    }
    const Strided<Word> grads{reinterpret_cast<const Word*>(dp), ld_, 1};
    micro_gemm(rows, p_, words<Format>(end), grads, keys_, out_, p_, false);
    store_rows<Format>(out_, p_, dq + first * shape_.stride, shape_.stride, rows, d_);
  }

  // dv and dk of the keys that rows of the tile see: of those on the diagonal, only the rows after
  // each strip of keys.
  void key_sums(Int i0, Int rows) {
    add_keys(0, i0, i0, 0, rows);
    for (Int r = 0; r < rows; r += kStrip) add_keys(i0 + r, at_most(kStrip, rows - r), i0, r, rows);
  }

  // Adds to the sums of `count` keys from `key` on what the queries of rows [r0, r1) of the tile at
  // query i0 give.
  void add_keys(Int key, Int count, Int i0, Int r0, Int r1) {
    const auto add = [&](Strided<Word> by_key, Panels<Word> right, float* sum) {
      by_key.data += r0 / Format::kElements * by_key.column + key;
      right.first = (i0 + r0) / Format::kElements;
      micro_gemm(count, p_, words<Format>(r1 - r0), by_key, right, sum + key * p_, p_, true);
    };
    add(Format::probabilities_by_key(s_, dp_, ld_), grads_, sum_v_);
    add(Format::gradients_by_key(s_, dp_, ld_), queries_, sum_k_);
  }

  HeadShape shape_;
  Int t_ = shape_.tokens, d_ = shape_.head_dim, n_ = padded(t_), p_ = padded(d_);
  Int ld_ = score_stride(n_);
  float scale_ = 1.0F / __builtin_sqrtf(static_cast<float>(d_));
  const T *q_, *y_, *dy_;
  Cutter cut_;
  Panels<Word> kt_, vt_;                 // [D,N]
  Panels<Word> queries_, grads_, keys_;  // [T,P]
  float *s_, *dp_;                       // [queries,N]
  float *sum_k_, *sum_v_;                // [T,P]
  float* out_;                           // [queries,P]
};

template <class Format, class T = typename Format::Element>
void backward(const HeadShape& shape, const T* q, const T* k, const T* v, const T* y,
              const float* lse, const T* dy, T* dq, T* dk, T* dv, void* memory) {
  Backward<Format>(shape, q, k, v, y, dy, memory).run(lse, dq, dk, dv);
}

}  // namespace
}  // namespace concertina::cpu
