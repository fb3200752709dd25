// fp32 attention, compiled once per instruction set.
#include "core/cpu/panel_attention.h"

namespace concertina::cpu {
namespace {

struct Floats : FloatWords {
  static void store(const float* from, float factor, float* to, Int n) {
#pragma omp simd
    for (Int j = 0; j < n; ++j) to[j] = factor * from[j];
  }

  static void softmax(const ScoreRows& row, float& top, float& sum) {
    mask_row(row.s, row.valid);
    top = max_row(row.s, row.valid, row.scale);
    sum = exp_row(row.s, row.valid, row.keys, row.scale, top, row.s);
  }

  static void score_grads(const ScoreRows& row, const float* lse, const float* delta) {
    float *s = row.s, *dp = row.dp;
    const float scale = row.scale, offset = *delta;
    mask_row(s, row.valid);
    exp_row(s, row.valid, row.keys, scale, *lse, s);
#pragma omp simd
    for (Int j = 0; j < row.keys; ++j) dp[j] = scale * s[j] * (dp[j] - offset);
  }

  static void drop(const std::uint32_t* keep, Int keys, float* s) {
#pragma omp simd
    for (Int j = 0; j < keys; ++j) s[j] = keep[j] != 0 ? s[j] : 0.0F;
  }
  static void drop_by_key(const std::uint32_t* keep, Int, const ScoreRows& row) {
    drop(keep, row.valid, row.s);
  }

  static Strided<float> probabilities_by_key(const float* s, const float*, Int stride) {
    return {s, 1, stride};
  }
  static Strided<float> gradients_by_key(const float*, const float* dp, Int stride) {
    return {dp, 1, stride};
  }
};

}  // namespace

extern const PanelAttention<float> CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA);
const PanelAttention<float> CONCERTINA_PASTE(panel_attention_, CONCERTINA_ISA) = {
    scratch<Floats>, forward<Floats>, backward<Floats>};

}  // namespace concertina::cpu
