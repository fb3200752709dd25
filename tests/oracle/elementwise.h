// Formulas of dropout, gradient sums and norms.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/oracle/values.h"

namespace concertina::oracle {

/// Returns whether element `e` of a sample is kept.
inline bool kept(Purpose purpose, const DropoutMask& mask, Index sample, Index e) {
  const auto words = Rng(mask.at.seed, purpose)
                         .words(mask.at.step, mask.at.sample + static_cast<std::uint32_t>(sample),
                                mask.at.unit, static_cast<std::uint32_t>(e / 4));
  return static_cast<double>(words[e % 4]) >= std::floor(mask.share * 0x1p32);
}

/// y = residual (may be empty) + the kept elements of u, scaled.
inline void issue(const ApplyDropout& op) {
  const Values u = values_of(op.u), residual = values_of(op.residual);
  Out y(op.y);
  const Index each = op.mask.sample_elements;
  for (Index i = 0; i < count_of(op.u); ++i)
    y[i] = (residual.empty() ? 0 : residual[i]) +
           (kept(Purpose::dropout, op.mask, i / each, i % each) ? u[i] / (1 - op.mask.share) : 0);
}

inline void issue(const Axpby& op) {
  const Values x = values_of(op.x);
  Out y(op.y);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = op.a * x[i] + op.b * y[i];
}

inline void issue(const SumSquares& op) {
  const Values x = values_of(op.x);
  std::fill(op.sums.begin(), op.sums.end(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) op.sums[i / op.block] += x[i] * x[i];
}

}  // namespace concertina::oracle
