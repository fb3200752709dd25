// The loops between the products, and attention: one table of functions per instruction set. All
// tables are compiled from the same sources (loops.cc, panel_attention.cc, attention_loops.cc) with
// different flags, and isa.cc selects one at run time. pair_attention.cc is only for AVX512-BF16
// and panel_products.cc only for AVX2.
//
// A group of loops is one header with a list of its loops and their bodies, which only loops.cc
// compiles. A list entry is TYPED over activations of type T (float or Bf16) or FP32: (result,
// name, parameters). Adding a loop changes only its group's header.
//
// These files use plain pointers and no library headers: an inline library function compiled with
// AVX-512 must never replace the portable one at link time. Invariant: every function is serial,
// and its result depends only on its arguments. Callers split work over threads by rows, columns or
// heads, never inside a sum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bf16.h"
#include "core/cpu/activations.h"
#include "core/cpu/elementwise.h"
#include "core/cpu/epilogues.h"
#include "core/cpu/norms.h"
#include "core/cpu/token_rows.h"
#include "core/cpu/updates.h"
#include "core/cpu/vocabulary.h"

namespace concertina::cpu {

using Int = std::int64_t;

/// All groups.
#define CONCERTINA_LOOPS(TYPED, FP32)       \
  CONCERTINA_ACTIVATION_LOOPS(TYPED, FP32)  \
  CONCERTINA_ELEMENTWISE_LOOPS(TYPED, FP32) \
  CONCERTINA_EPILOGUE_LOOPS(TYPED, FP32)    \
  CONCERTINA_NORM_LOOPS(TYPED, FP32)        \
  CONCERTINA_TOKEN_ROW_LOOPS(TYPED, FP32)   \
  CONCERTINA_UPDATE_LOOPS(TYPED, FP32) CONCERTINA_VOCABULARY_LOOPS(TYPED, FP32)
#define CONCERTINA_NO_LOOP(result, name, parameters)
#define CONCERTINA_POINTER(result, name, parameters) result(*name) parameters;

/// Loops over activations of type T, which are computed in fp32. `u` is the fp32 result of a
/// product, and may be the output if T is float.
template <class T>
struct ActivationLoops {
  CONCERTINA_LOOPS(CONCERTINA_POINTER, CONCERTINA_NO_LOOP)
};

/// Query i sees keys [0, min(first + i step, most)); step is 1 under a causal mask, else 0.
struct SeenKeys {
  std::int64_t first, step, most;
};

/// Dropout of attention probabilities: row i of the queries passed to a loop uses counters [first +
/// i row, first + (i + 1) row).
struct ScoreDropout {
  DropoutRule rule;
  std::uint32_t sample, first, row;
};
/// Returns the number of scratch words for a row of `keys` keys.
constexpr std::int64_t mask_words(std::int64_t keys) {
  return (keys + 31) / 32 * 32;
}

/// Scores of some of a head's queries with the keys that any of them sees.
struct ScoreTile {
  SeenKeys seen;  // per row
  std::int64_t rows, keys;
  std::int64_t stride;  // elements per row of scores or probabilities; >= keys rounded up to 16
  float scale;
  const ScoreDropout* drop;  // null: no dropout
  std::int64_t first;        // index in `drop` of the first row
  std::uint32_t* keep;       // [mask_words(keys)], scratch
};

/// Rows of D activations, `stride` elements apart.
struct HeadRows {
  std::int64_t stride, d;
};

/// y[D] = softmax(q k^T / sqrt(D)) v for one query, and k and v of `keys` consecutive rows.
/// `scratch` has attend_row_scratch() floats.
template <class T>
using AttendRow = void (*)(const T* q, const T* k, const T* v, std::int64_t keys, std::int64_t d,
                           float* scratch, T* y);
constexpr std::int64_t attend_row_scratch(std::int64_t keys, std::int64_t d) {
  return (keys + 31) / 16 * 16 + d;
}

/// Attention of single queries, and the loops between the matrix products of bf16 attention. In
/// these, probabilities `p` and score gradients `ds` are zero for masked keys, and kept
/// probabilities have not been scaled.
struct AttentionLoops {
  // p[rows,keys] = e^(scale s - top of the row), inverse[rows] = 1 / row sums, lse[rows]
  void (*softmax)(const ScoreTile& tile, float* s, Bf16* p, float* inverse, float* lse);
  // p = e^(scale s - lse), ds = scale p (dp - dy . y) with p before dropout and dp after it
  void (*score_grads)(const ScoreTile& tile, float* s, float* dp, const float* lse, const Bf16* y,
                      const Bf16* dy, HeadRows rows, Bf16* p, Bf16* ds);
  // to[count,D] = scale factor[count] from[count,D]; factor may be null (1)
  void (*store)(const float* from, const float* factor, float scale, std::int64_t count,
                HeadRows rows, Bf16* to);
  AttendRow<float> attend_f32;
  AttendRow<Bf16> attend_bf16;
};

/// Attention over panels of activations of type T, for one key/value head of a sample and the
/// `group` consecutive query heads that share it. `stride` is the row stride of qkv in elements,
/// `width` that of y. All pointers refer to the first column of this head (or the first query head)
/// in the sample's first row. lse points to the values of the first query head; the values of
/// consecutive query heads are `rows` apart. Gradients of masked keys are zero. The rows of `drop`
/// are the queries of all these heads, `rows` per head.
struct HeadShape {
  std::int64_t tokens, head_dim, stride, width, group;
  std::int64_t rows;  // at least `tokens`
  SeenKeys seen;
  const ScoreDropout* drop;  // null: no dropout

  /// Returns the factor for kept probabilities.
  float kept() const { return drop == nullptr ? 1.0F : drop->rule.scale; }
};
template <class T>
struct PanelAttention {
  std::size_t (*scratch)(const HeadShape& shape, bool backward);  // bytes
  void (*forward)(const HeadShape& shape, const T* q, const T* k, const T* v, T* y, float* lse,
                  void* scratch);
  void (*backward)(const HeadShape& shape, const T* q, const T* k, const T* v, const T* y,
                   const float* lse, const T* dy, T* dq, T* dk, T* dv, void* scratch);
};

/// fp32 products of linear maps over packed panels (panel_products.cc).
inline constexpr std::int64_t kPanelProductRows = 64;  // maximum number of rows for rows()
struct PanelProducts {
  // number of floats that pack() writes for B[k,n]
  std::int64_t (*packed)(std::int64_t k, std::int64_t n);
  // B[k,n]; one of its strides is 1
  void (*pack)(const float* b, std::int64_t b_row, std::int64_t b_column, std::int64_t k,
               std::int64_t n, float* packed);
  // c[m,n] = a[m,k] B[k,n]; a and c are row-major and dense
  void (*rows)(const float* a, const float* packed, std::int64_t m, std::int64_t k, std::int64_t n,
               float* c);
  // number of scratch floats for outer() up to these sizes
  std::int64_t (*outer_scratch)(std::int64_t depth, std::int64_t m, std::int64_t n);
  // c[m,n] (+)= left[depth,m]^T right[depth,n]; all three with row strides
  void (*outer)(const float* left, std::int64_t left_row, const float* right,
                std::int64_t right_row, std::int64_t depth, std::int64_t m, std::int64_t n,
                float* c, std::int64_t c_row, bool accumulate, float* scratch);
};

struct LoopTable {
  ActivationLoops<float> f32;
  ActivationLoops<Bf16> bf16;
  const PanelAttention<float>* attention_f32;
  const AttentionLoops* attention_bf16;
  CONCERTINA_LOOPS(CONCERTINA_NO_LOOP, CONCERTINA_POINTER)
};

#undef CONCERTINA_POINTER

}  // namespace concertina::cpu
