// Dropout, gradient sums and norms, by their formulas.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/oracle/values.h"

namespace concertina::oracle {

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

inline void issue(const ApplyDropout& op) {
  const std::vector<float> in = to_floats(op.u), skip = to_floats(op.residual);
  Out out(op.y);
  dropout(op.mask, rows_of(op.u), in.data(), skip.empty() ? nullptr : skip.data(), out.data());
}

inline void issue(const Axpby& op) {
  for (std::size_t i = 0; i < op.y.count; ++i)
    op.y.f32()[i] =
        static_cast<float>(static_cast<double>(op.a) * static_cast<double>(op.x.f32()[i]) +
                           static_cast<double>(op.b) * static_cast<double>(op.y.f32()[i]));
}

inline void issue(const SumSquares& op) {
  std::fill(op.sums.begin(), op.sums.end(), 0.0);
  for (std::size_t i = 0; i < op.x.count; ++i)
    op.sums[i / op.block] +=
        static_cast<double>(op.x.f32()[i]) * static_cast<double>(op.x.f32()[i]);
}

}  // namespace concertina::oracle
