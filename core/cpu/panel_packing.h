// Rows of one head copied into panels, as micro_gemm.h reads them; included by the per-ISA sources
// alone. A `Format` says what elements are, how words are made of them, and how rows are joined.
//
// Legend: T tokens, D head dimension, P = D padded to whole vectors, N = T padded likewise.
#pragma once

#include "core/cpu/micro_gemm.h"

namespace concertina::cpu {
namespace {

Int at_most(Int n, Int most) {
  return n < most ? n : most;
}

// Scratch is cut in order; every piece starts on a cache line.
struct Cutter {
  float* at;
  template <class Word = float>
  Word* take(Int count) {
    auto* piece = reinterpret_cast<Word*>(at);
    at += (count + 15) / 16 * 16;
    return piece;
  }
};

// Words of one float.
struct FloatWords {
  using Element = float;
  using Word = float;
  static constexpr Int kElements = 1;

  static void join(const float* row, Int, Int, float* line, Int n) {
#pragma omp simd
    for (Int j = 0; j < n; ++j) line[j] = row[j];
  }
};

// The rows of one head: contiguous D columns of a wider matrix.
template <class T>
struct Rows {
  const T* data;
  Int stride;
};

// All rows at once on their way to the cache: what reads them afterwards waits for each row by
// itself.
template <class T>
void prefetch(Rows<T> rows, Int t, Int d) {
  constexpr Int kLine = 64 / sizeof(T);
  for (Int i = 0; i < t; ++i)
    for (Int j = 0; j < d; j += kLine) __builtin_prefetch(rows.data + i * rows.stride + j, 0, 3);
}

// Words that hold n elements.
template <class Format>
constexpr Int words(Int n) {
  return (n + Format::kElements - 1) / Format::kElements;
}

// Rows along k, `stride` elements apart, as the left side of a product.
template <class Format>
Strided<typename Format::Word> left(Rows<typename Format::Element> rows) {
  return {reinterpret_cast<const typename Format::Word*>(rows.data),
          rows.stride / Format::kElements, 1};
}

// Where the lanes of two rows go when blocks of `step` lanes are exchanged: constants, or the
// compiler would put them together anew in each call.
template <int step>
struct Exchange {
  int low[kLanes], high[kLanes];
  constexpr Exchange() : low{}, high{} {
    for (int c = 0; c < kLanes; ++c) {
      const bool first = (c & step) == 0;
      low[c] = first ? c : static_cast<int>(kLanes) + c - step;
      high[c] = first ? c + step : static_cast<int>(kLanes) + c;
    }
  }
};

template <int step = 1>
[[gnu::always_inline]] inline void transpose(Vec (&v)[kLanes]) {
  if constexpr (step < kLanes) {
    static constexpr Exchange<step> kExchange;
    const auto low = __builtin_bit_cast(IntVec, kExchange.low);
    const auto high = __builtin_bit_cast(IntVec, kExchange.high);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & step) != 0) continue;
      const Vec a = v[i], b = v[i + step];
      v[i] = __builtin_shuffle(a, b, low);
      v[i + step] = __builtin_shuffle(a, b, high);
    }
    transpose<2 * step>(v);
  }
}

// A square of kLanes rows of words transposed in registers, by ever larger blocks.
template <class Word>
void transpose_square(const Word* from, Int from_stride, Word* to, Int to_stride) {
  Vec v[kLanes];
#pragma GCC unroll 16
  for (Int i = 0; i < kLanes; ++i) v[i] = *reinterpret_cast<const Vec*>(from + i * from_stride);
  transpose(v);
#pragma GCC unroll 16
  for (Int i = 0; i < kLanes; ++i) *reinterpret_cast<Vec*>(to + i * to_stride) = v[i];
}

// rows[T,D] transposed, as panels of [words of D,N]; zero beyond T.
template <class Format>
Panels<typename Format::Word> pack_transposed(Rows<typename Format::Element> rows, Int t, Int d,
                                              Int n, Cutter& scratch) {
  using Word = typename Format::Word;
  const Strided<Word> from = left<Format>(rows);
  const Int depth = words<Format>(d);
  Word* out = scratch.take<Word>(depth * n);
  for (Int j0 = 0; j0 < n; j0 += kPanel) {
    const Int w = kPanel < n - j0 ? kPanel : n - j0;
    for (Int j = 0; j < w; j += kLanes) {
      const Word* row = from.data + (j0 + j) * from.row;
      Word* column = out + j0 * depth + j;
      const Int valid = t - j0 - j < kLanes ? t - j0 - j : kLanes;
      Int p = 0;
      if (valid == kLanes)
        for (; p + kLanes <= depth; p += kLanes)
          transpose_square(row + p, from.row, column + p * w, w);
      for (; p < depth; ++p)
        for (Int i = 0; i < kLanes; ++i)
          column[p * w + i] = i < valid ? row[i * from.row + p] : Word{};
    }
  }
  return {out, depth};
}

// rows[T,D] as panels of [words of T,P]; zero beyond D and T.
template <class Format>
Panels<typename Format::Word> pack_rows(Rows<typename Format::Element> rows, Int t, Int d,
                                        Cutter& scratch) {
  using Word = typename Format::Word;
  const Int p = padded(d), depth = words<Format>(t);
  Word* out = scratch.take<Word>(depth * p);
  for (Int j0 = 0; j0 < p; j0 += kPanel) {
    const Int w = kPanel < p - j0 ? kPanel : p - j0, valid = w < d - j0 ? w : d - j0;
    Word* line = out + j0 * depth;
    const auto* row = rows.data + j0;
    for (Int i = 0; i < t; i += Format::kElements, line += w) {
      Format::join(row + i * rows.stride, rows.stride, t - i, line, valid);
      for (Int j = valid; j < w; ++j) line[j] = Word{};
    }
  }
  return {out, depth};
}

}  // namespace
}  // namespace concertina::cpu
