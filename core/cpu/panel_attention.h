// Attention of the query heads that share one key head, tiled by rows of queries. Included only by
// the per-ISA sources. The part above a causal mask is skipped in strips of queries: queries before
// i1 use only keys [0, i1). Probabilities are not stored; the backward pass recomputes them from
// log-sum-exp (FlashAttention, Dao et al. 2022).
//
// In addition to what panels.h needs, a `Format` defines the loops over scores. They overwrite the
// scores with their results, as words of elements: probabilities and score gradients by query, and
// in the backward pass both also by key, where a word combines the queries of one step. Dropout
// zeroes probabilities; the factor for kept probabilities is applied to the sums.
//
// Dimensions: T tokens, D head dimension, P = D padded to whole vectors, N = T padded likewise.
#pragma once

#include "core/cpu/attention_rows.h"
#include "core/cpu/loops.h"
#include "core/cpu/panels.h"

namespace concertina::cpu {
namespace {

constexpr Int kQueryTile = 64, kStrip = 32;

// Consecutive score rows of one strip: one per element of a word, or fewer at the end. The first
// row sees `valid` keys, the second (if any) `next`. Results are zero up to `keys`, where the strip
// stops reading.
struct ScoreRows {
  float *s, *dp;  // scores; in the backward pass, gradients of the probabilities
  Int stride, rows, valid, next, keys;
  float scale;
};

// Returns the row stride of scores; never a power of two, so that rows stay in L1.
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
                        : transposed + rows + kStrip * scores,
            keep = shape.drop == nullptr ? 0 : Format::kElements * mask_words(shape.tokens);
  return static_cast<std::size_t>(count + kStrip * p + keep + 16 * 16) * sizeof(float);
}

template <class Format>
void store_rows(const float* from, Int from_stride, float factor, typename Format::Element* to,
                Int to_stride, Int rows, Int d) {
  for (Int i = 0; i < rows; ++i)
    Format::store(from + i * from_stride, factor, to + i * to_stride, d);
}

// Scratch of the forward pass, used by all heads of a group.
template <class Word>
struct ForwardScratch {
  Panels<Word> kt, values;  // [D,N], [keys,P]
  float *s, *out;           // [queries,N], [queries,P]
  std::uint32_t* keep;      // dropout mask of one row
};

// Applies dropout to the strip's rows, the first of which is row `row` of `shape`.
template <class Format>
[[gnu::noinline]] void drop_strip(const HeadShape& shape, Int row, Int i0, Int rows, Int ld,
                                  float* s, std::uint32_t* keep) {
  for (Int i = 0; i < rows; ++i) {
    const Int valid = seen_by(shape.seen, i0 + i);
    kept_of_row(*shape.drop, row + i, valid, keep);
    Format::drop(keep, valid, s + i * ld);
  }
}

template <class Format, class T = typename Format::Element>
[[gnu::noinline]] void forward_head(const HeadShape& shape,
                                    const ForwardScratch<typename Format::Word>& scratch, Int head,
                                    const T* q, T* y, float* lse) {
  using Word = typename Format::Word;
  const SeenKeys seen = shape.seen;
  const Int t = shape.tokens, d = shape.head_dim, n = padded(seen.most), p = padded(d);
  const Int ld = score_stride(n), width = shape.width;
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(d));
  float *const s = scratch.s, *const out = scratch.out, kept = shape.kept();
  for (Int i0 = 0; i0 < t; i0 += kStrip) {
    const Int i1 = at_most(i0 + kStrip, t), rows = i1 - i0, end = seen_by(seen, i1 - 1);
    micro_gemm(rows, whole_panels(end, n), words<Format>(d),
               left<Format>({q + i0 * shape.stride, shape.stride}), scratch.kt, s, ld, false);
    float top[kStrip], sum[kStrip];
    for (Int i = 0; i < rows; ++i)
      Format::softmax({s + i * ld, nullptr, ld, 1, seen_by(seen, i0 + i), 0, end, scale}, top[i],
                      sum[i]);
    for (Int i = 0; i < rows; ++i) lse[i0 + i] = top[i] + __builtin_logf(sum[i]);
    if (shape.drop != nullptr)
      drop_strip<Format>(shape, head * shape.rows + i0, i0, rows, ld, s, scratch.keep);
    const Strided<Word> weights{reinterpret_cast<const Word*>(s), ld, 1};
    micro_gemm(rows, p, words<Format>(end), weights, scratch.values, out, p, false);
    for (Int i = 0; i < rows; ++i)
      Format::store(out + i * p, kept / sum[i], y + (i0 + i) * width, d);
  }
}

template <class Format, class T = typename Format::Element>
void forward(const HeadShape& shape, const T* q, const T* k, const T* v, T* y, float* lse,
             void* memory) {
  const Int keys = shape.seen.most, d = shape.head_dim, n = padded(keys);
  prefetch<T>({k, shape.stride}, keys, d);
  prefetch<T>({v, shape.stride}, keys, d);
  prefetch<T>({q, shape.stride}, shape.tokens, d);
  Cutter cut{static_cast<float*>(memory)};
  ForwardScratch<typename Format::Word> scratch{
      pack_transposed<Format>({k, shape.stride}, keys, d, n, cut),
      pack_rows<Format>({v, shape.stride}, keys, d, cut), nullptr, nullptr, nullptr};
  scratch.s = cut.take(kStrip * score_stride(n));
  scratch.out = cut.take(kStrip * padded(d));
  if (shape.drop != nullptr) scratch.keep = cut.take<std::uint32_t>(mask_words(keys));
  for (Int head = 0; head < shape.group; ++head)
    forward_head<Format>(shape, scratch, head, q + head * d, y + head * d, lse + head * shape.rows);
}

template <class T>
void prefetch_head(const HeadShape& shape, const T* q, const T* y, const T* dy) {
  prefetch<T>({q, shape.stride}, shape.tokens, shape.head_dim);
  prefetch<T>({dy, shape.width}, shape.tokens, shape.head_dim);
  prefetch<T>({y, shape.width}, shape.tokens, shape.head_dim);
}

// Sums dk and dv over the heads, in order.
template <class Format, class T = typename Format::Element>
class Backward {
 public:
  Backward(const HeadShape& shape, const T* k, const T* v, void* memory)
      : shape_(shape), cut_{static_cast<float*>(memory)} {
    prefetch<T>({k, shape.stride}, keys_, d_);
    prefetch<T>({v, shape.stride}, keys_, d_);
    kt_ = pack_transposed<Format>({k, shape.stride}, keys_, d_, n_, cut_);
    vt_ = pack_transposed<Format>({v, shape.stride}, keys_, d_, n_, cut_);
    key_rows_ = pack_rows<Format>({k, shape.stride}, keys_, d_, cut_);
    s_ = cut_.take(kQueryTile * ld_), dp_ = cut_.take(kQueryTile * ld_);
    sum_k_ = cut_.take(shape.tokens * p_), sum_v_ = cut_.take(shape.tokens * p_);
    out_ = cut_.take(kStrip * p_);
    if (shape.drop != nullptr) keep_ = cut_.take<std::uint32_t>(Format::kElements * row_words_);
    for (Int i = 0; i < shape.tokens * p_; ++i) sum_k_[i] = sum_v_[i] = 0;
  }

  void add_head(Int head, const T* q, const T* y, const float* lse, const T* dy, T* dq) {
    head_ = head, q_ = q, y_ = y, dy_ = dy;
    Cutter cut = cut_;  // reused for the next head's rows
    queries_ = pack_rows<Format>({q, shape_.stride}, shape_.tokens, d_, cut);
    grads_ = pack_rows<Format>({dy, shape_.width}, shape_.tokens, d_, cut);
    for (Int i0 = 0; i0 < shape_.tokens; i0 += kQueryTile) {
      const Int rows = at_most(kQueryTile, shape_.tokens - i0);
      for (Int r = 0; r < rows; r += kStrip) strip(i0, r, at_most(r + kStrip, rows), lse, dq);
      key_sums(i0, rows);
    }
  }

  void store(T* dk, T* dv) const {
    store_rows<Format>(sum_k_, p_, 1.0F, dk, shape_.stride, shape_.tokens, d_);
    store_rows<Format>(sum_v_, p_, shape_.kept(), dv, shape_.stride, shape_.tokens, d_);
  }

 private:
  using Word = typename Format::Word;

  // Computes dq, and the scores of rows [r0, r1) in the tile at query i0 with their gradients.
  void strip(Int i0, Int r0, Int r1, const float* lse, T* dq) {
    const Int first = i0 + r0, rows = r1 - r0, end = seen_by(shape_.seen, i0 + r1 - 1);
    const Int keys = whole_panels(end, n_);
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
      const ScoreRows step{s + i * ld_,
                           dp + i * ld_,
                           ld_,
                           together,
                           seen_by(shape_.seen, first + i),
                           seen_by(shape_.seen, first + i + 1),
                           end,
                           scale_};
      if (shape_.drop != nullptr) drop_grads_of(first + i, step);
      Format::score_grads(step, lse + first + i, delta);
      if (shape_.drop != nullptr) Format::drop_by_key(keep_, row_words_, step);
    }
    const Strided<Word> grads{reinterpret_cast<const Word*>(dp), ld_, 1};
    micro_gemm(rows, p_, words<Format>(end), grads, key_rows_, out_, p_, false);
    store_rows<Format>(out_, p_, 1.0F, dq + first * shape_.stride, shape_.stride, rows, d_);
  }

  // Writes the dropout mask of the rows to keep_.
  [[gnu::noinline]] void drop_grads_of(Int query, const ScoreRows& row) {
    for (Int i = 0; i < row.rows; ++i) {
      const Int valid = i == 0 ? row.valid : row.next;
      std::uint32_t* keep = keep_ + i * row_words_;
      kept_of_row(*shape_.drop, head_ * shape_.rows + query + i, valid, keep);
      drop_grads(keep, shape_.drop->rule.scale, valid, row.dp + i * row.stride);
    }
  }

  // Computes dv and dk of the keys that rows of the tile see. On the diagonal of a causal mask,
  // only the rows after each strip of keys contribute.
  void key_sums(Int i0, Int rows) {
    const Int end = seen_by(shape_.seen, i0 + rows - 1);
    const Int by_all = shape_.seen.step == 0 ? end : at_most(i0, end);
    add_keys(0, by_all, i0, 0, rows);
    for (Int r = 0; by_all + r < end; r += kStrip)
      add_keys(by_all + r, at_most(kStrip, end - by_all - r), i0, r, rows);
  }

  // Adds the contribution of rows [r0, r1) in the tile at query i0 to the sums of `count` keys from
  // `key` on.
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
  Int keys_ = shape_.seen.most, d_ = shape_.head_dim, n_ = padded(keys_), p_ = padded(d_);
  Int ld_ = score_stride(n_);
  float scale_ = 1.0F / __builtin_sqrtf(static_cast<float>(d_));
  Int head_ = 0, row_words_ = mask_words(keys_);
  const T *q_ = nullptr, *y_ = nullptr, *dy_ = nullptr;
  std::uint32_t* keep_ = nullptr;  // for the rows of one step, with dropout
  Cutter cut_;
  Panels<Word> kt_, vt_;                     // [D,N]
  Panels<Word> queries_, grads_, key_rows_;  // [T or keys,P]
  float *s_, *dp_;                           // [queries,N]
  float *sum_k_, *sum_v_;                    // [T,P]
  float* out_;                               // [queries,P]
};

template <class Format, class T = typename Format::Element>
void backward(const HeadShape& shape, const T* q, const T* k, const T* v, const T* y,
              const float* lse, const T* dy, T* dq, T* dk, T* dv, void* memory) {
  const Int d = shape.head_dim;
  prefetch_head(shape, q, y, dy);
  Backward<Format> heads(shape, k, v, memory);
  heads.add_head(0, q, y, lse, dy, dq);
  for (Int head = 1; head < shape.group; ++head) {
    const Int at = head * d;
    prefetch_head(shape, q + at, y + at, dy + at);
    heads.add_head(head, q + at, y + at, lse + head * shape.rows, dy + at, dq + at);
  }
  heads.store(dk, dv);
}

}  // namespace
}  // namespace concertina::cpu
