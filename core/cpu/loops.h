// The loops between the products, and attention: one table of functions an instruction set.
// Each table comes from the same source (loops.cc, panel_attention.cc, attention_loops.cc) compiled
// with other flags; pair_attention.cc is for AVX512-BF16 alone and panel_products.cc for AVX2;
// isa.cc chooses at run time.
//
// A group of loops is one header: a list of them, TYPED over activations of type T (float or Bf16)
// or FP32, as (result, name, parameters), and the loops themselves, which loops.cc alone compiles.
// The tables follow from the lists: a new loop is in its group's header and nowhere else.
//
// Plain pointers and no library headers in here: an inline function of a library that is compiled
// with AVX-512 must never replace the portable one at link time. Invariant: every function is
// serial and its result depends on its arguments alone; callers split work over threads by rows,
// columns or heads, never inside a sum.
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

/// Loops over activations of type T: read and written in T, computed in fp32. What a product left
/// is fp32 in `u`, which may be the output where T is float.
template <class T>
struct ActivationLoops {
  CONCERTINA_LOOPS(CONCERTINA_POINTER, CONCERTINA_NO_LOOP)
};

/// Query i sees keys [0, min(first + i step, most)): step is 1 under a causal mask, else 0.
struct SeenKeys {
  std::int64_t first, step, most;
};

/// Dropout of attention's probabilities: row i, of the queries that a loop is given, is dropped by
/// counters [first + i row, first + (i + 1) row).
struct ScoreDropout {
  DropoutRule rule;
  std::uint32_t sample, first, row;
};
/// Words of scratch that a row of so many keys takes.
constexpr std::int64_t mask_words(std::int64_t keys) {
  return (keys + 31) / 32 * 32;
}

/// Scores of some queries of one head against the keys that any of them sees.
struct ScoreTile {
  SeenKeys seen;  // by row
  std::int64_t rows, keys;
  std::int64_t stride;  // of a row of scores or probabilities, elements; >= keys rounded up to 16
  float scale;
  const ScoreDropout* drop;  // null: nothing is dropped
  std::int64_t first;        // the first row, of those of `drop`
  std::uint32_t* keep;       // [mask_words(keys)] of scratch
};

/// Rows of D activations, `stride` elements apart.
struct HeadRows {
  std::int64_t stride, d;
};

/// Attention's loops between its products in bf16. Probabilities `p` and score gradients `ds` are
/// zero where a query sees no key; what is kept of them is not scaled yet.
struct AttentionLoops {
  // p[rows,keys] = e^(scale s - top of the row), inverse[rows] = 1 / row sums, lse[rows]
  void (*softmax)(const ScoreTile& tile, float* s, Bf16* p, float* inverse, float* lse);
  // p = e^(scale s - lse), ds = scale p (dp - dy . y), before p is dropped, with dp dropped
  void (*score_grads)(const ScoreTile& tile, float* s, float* dp, const float* lse, const Bf16* y,
                      const Bf16* dy, HeadRows rows, Bf16* p, Bf16* ds);
  // to[count,D] = scale factor[count] from[count,D]; factor may be null (1)
  void (*store)(const float* from, const float* factor, float scale, std::int64_t count,
                HeadRows rows, Bf16* to);
};

/// Attention over panels of activations of type T, of one head of keys and values in one sample and
/// the `group` neighbouring heads of queries that share it. `stride` is that of rows of qkv in
/// elements, `width` that of y's. All start at this head's (or the first query head's) first column
/// of the sample's first row, lse at the first query head's; that of the next is `rows` further.
/// The gradient of keys that no query sees is zero. Rows of `drop` are the queries of all these
/// heads, `rows` of each.
struct HeadShape {
  std::int64_t tokens, head_dim, stride, width, group;
  std::int64_t rows;  // at least `tokens`
  SeenKeys seen;
  const ScoreDropout* drop;  // null: nothing is dropped

  /// The factor of what is kept.
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

/// Products of linear maps in fp32 over packed panels (panel_products.cc).
inline constexpr std::int64_t kPanelProductRows = 64;  // at most, of rows()
struct PanelProducts {
  // floats that pack() writes for B[k,n]
  std::int64_t (*packed)(std::int64_t k, std::int64_t n);
  // B[k,n]; one of its strides is 1
  void (*pack)(const float* b, std::int64_t b_row, std::int64_t b_column, std::int64_t k,
               std::int64_t n, float* packed);
  // c[m,n] = a[m,k] B[k,n], a and c row-major and dense
  void (*rows)(const float* a, const float* packed, std::int64_t m, std::int64_t k, std::int64_t n,
               float* c);
  // floats of scratch for outer() of at most these
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
