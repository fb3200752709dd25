// Small dense products of cache-resident operands for attention's tiles, and packing of rows into
// panels. Included only by the per-ISA sources.
// Invariant: additions over k are in ascending order for every element, regardless of the tile.
//
// C[m,n] (+)= A[m,k] B[k,n], where k is counted in words: a float, or two bf16 values that one
// instruction multiplies and adds. A has arbitrary strides (so A^T is free), C is row-major fp32,
// and B is in contiguous panels of kPanel columns, because rows a power of two apart would evict
// each other from L1. n is a multiple of kLanes; callers pad.
#pragma once

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "core/cpu/vector.h"

namespace concertina::cpu {
namespace {

/// Two bf16 values that are neighbors along k, as one word. May alias bf16 values in memory.
struct [[gnu::may_alias]] Pair {
  std::uint32_t bits;
};
typedef int PairVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

template <class Word>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type = Vec;
};
template <>
struct VectorOf<Pair> {
  using Type = PairVec;
};

[[gnu::always_inline]] inline Vec multiply_add(Vec sum, float a, Vec b) {
  return sum + a * b;
}
#if defined(__AVX512BF16__)
[[gnu::always_inline]] inline Vec multiply_add(Vec sum, Pair a, PairVec b) {
  const __m512i left = _mm512_set1_epi32(static_cast<int>(a.bits));
  return _mm512_dpbf16_ps(sum, (__m512bh)left, (__m512bh)b);
}
#endif

template <class Word>
struct Strided {
  const Word* data;
  std::int64_t row, column;  // strides in words
};

inline constexpr std::int64_t kPanel = 2 * kLanes;

/// Rows [first, ...) of a matrix [depth, n]. Element (p, j) is at data[j0 depth + (first + p) w + j
/// - j0], where j0 is the first column of j's panel and w its width (kPanel, or kLanes if the
/// last panel is half as wide).
template <class Word>
struct Panels {
  const Word* data;
  std::int64_t depth, first = 0;
};

/// Rounds n columns up to whole panels, but not beyond the `stored` columns of the matrix.
inline std::int64_t whole_panels(std::int64_t n, std::int64_t stored) {
  const std::int64_t up = (n + kPanel - 1) / kPanel * kPanel;
  return up < stored ? up : stored;
}

template <int kRows, int kVecs, class Word>
[[gnu::always_inline]] inline void micro_tile(std::int64_t k, Strided<Word> a, const Word* b,
                                              float* c, std::int64_t ldc, bool accumulate) {
  using Right = typename VectorOf<Word>::Type;
  Vec sum[kRows][kVecs] = {};
  for (std::int64_t p = 0; p < k; ++p, b += kVecs * kLanes) {
    Right right[kVecs];
#pragma GCC unroll 8
    for (int j = 0; j < kVecs; ++j) right[j] = *reinterpret_cast<const Right*>(b + j * kLanes);
    const Word* left = a.data + p * a.column;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Word value = left[i * a.row];
#pragma GCC unroll 8
      for (int j = 0; j < kVecs; ++j) sum[i][j] = multiply_add(sum[i][j], value, right[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < kVecs; ++j) {
      Vec& out = *reinterpret_cast<Vec*>(c + i * ldc + j * kLanes);
      out = accumulate ? out + sum[i][j] : sum[i][j];
    }
}

template <int kRows, class Word>
[[gnu::always_inline]] inline void micro_rows(std::int64_t n, std::int64_t k, Strided<Word> a,
                                              Panels<Word> b, float* c, std::int64_t ldc,
                                              bool accumulate) {
  std::int64_t j = 0;
  for (; j + kPanel <= n; j += kPanel)
    micro_tile<kRows, 2>(k, a, b.data + j * b.depth + b.first * kPanel, c + j, ldc, accumulate);
  if (j < n)
    micro_tile<kRows, 1>(k, a, b.data + j * b.depth + b.first * kLanes, c + j, ldc, accumulate);
}

// 16 AVX-512 or 12 AVX accumulators hide the multiply-add latency and fit in the registers. AVX2
// has 16 registers: two of the other four hold a row of B, and one holds an element of A.
inline constexpr std::int64_t kMicroRows = kLanes == 16 ? 8 : kLanes == 8 ? 6 : 4;

template <class Word>
[[gnu::noinline]] void micro_gemm(std::int64_t m, std::int64_t n, std::int64_t k, Strided<Word> a,
                                  Panels<Word> b, float* c, std::int64_t ldc, bool accumulate) {
  const auto advance = [&](std::int64_t rows) {
    a.data += rows * a.row;
    c += rows * ldc;
    m -= rows;
  };
  // With six rows at a time, the last 8 are split into 4 and 4, which is faster than 6 and 2.
  for (; m >= kMicroRows && (kMicroRows != 6 || m != 8); advance(kMicroRows))
    micro_rows<kMicroRows>(n, k, a, b, c, ldc, accumulate);
  for (; m >= 4; advance(4)) micro_rows<4>(n, k, a, b, c, ldc, accumulate);
  for (; m >= 2; advance(2)) micro_rows<2>(n, k, a, b, c, ldc, accumulate);
  if (m == 1) micro_rows<1>(n, k, a, b, c, ldc, accumulate);
}

// Panels of the rows of one head. A `Format` defines the elements, how words are formed from them,
// and how rows are combined.
//
// Dimensions: T tokens, D head dimension, P = D padded to whole vectors, N = T padded likewise.

Int at_most(Int n, Int most) {
  return n < most ? n : most;
}

// Allocates scratch in order. Every piece starts on a cache line.
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

// The rows of one head: D contiguous columns of a wider matrix.
template <class T>
struct Rows {
  const T* data;
  Int stride;
};

// Prefetches all rows at once, because the subsequent loop would wait for each row separately.
template <class T>
void prefetch(Rows<T> rows, Int t, Int d) {
  constexpr Int kLine = 64 / sizeof(T);
  for (Int i = 0; i < t; ++i)
    for (Int j = 0; j < d; j += kLine) __builtin_prefetch(rows.data + i * rows.stride + j, 0, 3);
}

// Returns the number of words for n elements.
template <class Format>
constexpr Int words(Int n) {
  return (n + Format::kElements - 1) / Format::kElements;
}

// Returns rows along k, `stride` elements apart, as the left side of a product.
template <class Format>
Strided<typename Format::Word> left(Rows<typename Format::Element> rows) {
  return {reinterpret_cast<const typename Format::Word*>(rows.data),
          rows.stride / Format::kElements, 1};
}

// The destinations of the lanes of two rows when exchanging blocks of `step` lanes. They are
// constants, because the compiler would otherwise recompute them in each call.
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
      v[i] = CONCERTINA_SHUFFLE(a, b, low);
      v[i + step] = CONCERTINA_SHUFFLE(a, b, high);
    }
    transpose<2 * step>(v);
  }
}

// Transposes a square of kLanes rows of words in registers, in increasingly large blocks.
template <class Word>
void transpose_square(const Word* from, Int from_stride, Word* to, Int to_stride) {
  Vec v[kLanes];
#pragma GCC unroll 16
  for (Int i = 0; i < kLanes; ++i) v[i] = *reinterpret_cast<const Vec*>(from + i * from_stride);
  transpose(v);
#pragma GCC unroll 16
  for (Int i = 0; i < kLanes; ++i) *reinterpret_cast<Vec*>(to + i * to_stride) = v[i];
}

// Packs rows[T,D], transposed, as panels of [words of D,N]; zero beyond T.
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

// Packs rows[T,D] as panels of [words of T,P]; zero beyond D and T.
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
