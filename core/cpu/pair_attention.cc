// bf16 attention with AVX512-BF16, whose instructions multiply pairs along k.
// The instructions determine the rounding. They flush denormal operands and results to zero.
#include <immintrin.h>

#include "core/cpu/panel_attention.h"

namespace concertina::cpu {
namespace {

[[gnu::always_inline]] inline Vec load(const float* from) {
  return *reinterpret_cast<const Vec*>(from);
}

// Rounds a into the lower half of the result, and b into the upper half.
[[gnu::always_inline]] inline __m512bh both(Vec a, Vec b) {
  return _mm512_cvtne2ps_pbh(b, a);
}

// Interleaves the halves of both(a, b) into words (a[j], b[j]).
[[gnu::always_inline]] inline __m512i joined(__m512bh x) {
  return (__m512i)__builtin_shufflevector(x, x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                          23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                          15, 31);
}

[[gnu::always_inline]] inline void put(float* to, __m256i from) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), from);
}

// Sums pairwise, because 16 chained additions would take as long as the other work on a short row.
[[gnu::always_inline]] inline float lane_sum(Vec x) {
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
    IntVec other;
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) other[lane] = lane ^ half;
    x += CONCERTINA_SHUFFLE(x, other);
  }
  return x[0];
}

void clear(float* from, Int bytes) {
  __builtin_memset(from, 0, static_cast<std::size_t>(bytes));
}

struct Pairs {
  using Element = Bf16;
  using Word = Pair;
  static constexpr Int kElements = 2;

  static void join(const Bf16* row, Int stride, Int rows, Pair* line, Int n) {
    const Bf16* next = row + (rows > 1 ? stride : 0);
    const std::uint32_t there = rows > 1 ? 0xFFFF0000U : 0;
#pragma omp simd
    for (Int j = 0; j < n; ++j)
      line[j].bits = row[j].bits | (static_cast<std::uint32_t>(next[j].bits) << 16 & there);
  }

  static void store(const float* from, float factor, Bf16* to, Int n) {
    for (Int j = 0; j < n; j += kLanes) {
      const auto there = static_cast<__mmask16>(n - j < kLanes ? (1 << (n - j)) - 1 : 0xFFFF);
      _mm256_mask_storeu_epi16(to + j, there, (__m256i)_mm512_cvtneps_pbh(factor * load(from + j)));
    }
  }

  // The probabilities of 16 keys take the place of the scores of 8 keys.
  static void softmax(const ScoreRows& row, float& top, float& sum) {
    mask_row(row.s, row.valid);
    top = max_row(row.s, row.valid, row.scale);
    Vec sums{};
    const Int whole = padded(row.valid);
    for (Int j = 0; j < whole; j += kLanes) {
      const Vec e = exp_nonpositive(row.scale * load(row.s + j) - top);
      sums += e;
      put(row.s + j / 2, (__m256i)_mm512_cvtneps_pbh(e));
    }
    clear(row.s + whole / 2, 2 * (padded(row.keys) - whole));
    sum = lane_sum(sums);
  }

  // One word per key replaces the scores: probabilities in the first row, gradients in the second.
  static void score_grads(const ScoreRows& row, const float* lse, const float* delta) {
    float *s0 = row.s, *s1 = s0 + row.stride, *d0 = row.dp, *d1 = d0 + row.stride;
    const bool two = row.rows > 1;
    const float scale = row.scale, lse1 = two ? lse[1] : 0, delta1 = two ? delta[1] : 0;
    const Int whole = padded(two ? row.next : row.valid);
    mask_row(s0, row.valid, whole);
    if (two) {
      mask_row(s1, row.next, whole);
    } else {
      for (Int j = 0; j < whole; ++j) s1[j] = kMasked, d1[j] = 0;
    }
    for (Int j = 0; j < whole; j += kLanes) {
      const Vec p0 = exp_nonpositive(scale * load(s0 + j) - lse[0]);
      const Vec p1 = exp_nonpositive(scale * load(s1 + j) - lse1);
      const __m512bh grads =
          both(scale * p0 * (load(d0 + j) - delta[0]), scale * p1 * (load(d1 + j) - delta1));
      _mm512_storeu_si512(s0 + j, joined(both(p0, p1)));
      _mm512_storeu_si512(s1 + j, joined(grads));
      const auto halves = (__m512i)grads;
      put(d0 + j / 2, __builtin_shufflevector(halves, halves, 0, 1, 2, 3));
      put(d1 + j / 2, __builtin_shufflevector(halves, halves, 4, 5, 6, 7));
    }
    const Int hidden = padded(row.keys) - whole;
    clear(s0 + whole, 4 * hidden);
    clear(s1 + whole, 4 * hidden);
    clear(d0 + whole / 2, 2 * hidden);
    clear(d1 + whole / 2, 2 * hidden);
  }

  static std::uint32_t both_kept(std::uint32_t low, std::uint32_t high) {
    return (low & 0xFFFF) | (high & 0xFFFF0000);
  }

  static void drop(const std::uint32_t* keep, Int keys, float* s) {
    auto* words = reinterpret_cast<Pair*>(s);
#pragma omp simd
    for (Int j = 0; j < (keys + 1) / 2; ++j)
      words[j].bits &= both_kept(keep[2 * j], keep[2 * j + 1]);
  }

  // A key that the first row does not see has no probability to drop in that row.
  static void drop_by_key(const std::uint32_t* keep, Int stride, const ScoreRows& row) {
    auto* words = reinterpret_cast<Pair*>(row.s);
    const std::uint32_t* next = row.rows > 1 ? keep + stride : keep;
#pragma omp simd
    for (Int j = 0; j < (row.rows > 1 ? row.next : row.valid); ++j)
      words[j].bits &= both_kept(keep[j], next[j]);
  }

  static Strided<Pair> probabilities_by_key(const float* s, const float*, Int stride) {
    return {reinterpret_cast<const Pair*>(s), 1, 2 * stride};
  }
  static Strided<Pair> gradients_by_key(const float* s, const float*, Int stride) {
    return {reinterpret_cast<const Pair*>(s + stride), 1, 2 * stride};
  }
};

}  // namespace

extern const PanelAttention<Bf16> pair_attention;
const PanelAttention<Bf16> pair_attention = {scratch<Pairs>, forward<Pairs>, backward<Pairs>};

}  // namespace concertina::cpu
