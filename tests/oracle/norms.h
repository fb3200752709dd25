// Formulas of layer norm and RMS norm: R rows, C width.
#pragma once

#include <cmath>

#include "tests/oracle/values.h"

namespace concertina::oracle {

template <bool kCentered>
void issue(const NormForward<kCentered>& op) {
  const Values x = values_of(op.x), gamma = values_of(op.gamma), beta = values_of(op.beta);
  Out y(op.y), mean(op.mean), rstd(op.rstd);
  const Index width = count_of(op.gamma);
  for (Index r = 0; r < count_of(op.rstd); ++r) {
    const double* row = &x[r * width];
    double sum = 0, squares = 0;
    for (Index c = 0; kCentered && c < width; ++c) sum += row[c];
    const double middle = sum / static_cast<double>(width);
    if (kCentered) mean[r] = middle;
    for (Index c = 0; c < width; ++c) squares += std::pow(row[c] - middle, 2);
    rstd[r] = 1 / std::sqrt(squares / static_cast<double>(width) + op.eps);
    for (Index c = 0; c < width; ++c)
      y[r * width + c] = (row[c] - middle) * rstd[r] * gamma[c] + (kCentered ? beta[c] : 0);
  }
}

/// Returns the mean of each row, or 0 if the norm is not centered.
template <bool kCentered>
Values means_of(View mean, View rstd) {
  return kCentered ? values_of(mean) : Values(rstd.count);
}

/// Without centering, the gradient keeps its mean.
template <bool kCentered>
void issue(const NormInput<kCentered>& op) {
  const Values dy = values_of(op.dy), x = values_of(op.x), gamma = values_of(op.gamma),
               mean = means_of<kCentered>(op.mean, op.rstd), rstd = values_of(op.rstd),
               residual = values_of(op.residual_grad);
  Out dx(op.dx);
  const Index width = count_of(op.gamma);
  const auto n = static_cast<double>(width);
  for (Index r = 0; r < count_of(op.rstd); ++r) {
    const auto xhat = [&](Index c) { return (x[r * width + c] - mean[r]) * rstd[r]; };
    const auto dxhat = [&](Index c) { return dy[r * width + c] * gamma[c]; };
    double sum = 0, dot = 0;
    for (Index c = 0; c < width; ++c) {
      sum += kCentered ? dxhat(c) : 0;
      dot += dxhat(c) * xhat(c);
    }
    for (Index c = 0; c < width; ++c)
      dx[r * width + c] = rstd[r] * (dxhat(c) - sum / n - xhat(c) * dot / n) +
                          (residual.empty() ? 0 : residual[r * width + c]);
  }
}

/// Computes the column sums of dy times (x - mean) rstd, and of dy.
template <bool kCentered>
void issue(const NormWeight<kCentered>& op) {
  const Values dy = values_of(op.dy), x = values_of(op.x), rstd = values_of(op.rstd),
               mean = means_of<kCentered>(op.mean, op.rstd);
  Out dgamma(op.dgamma), dbeta(op.dbeta);
  const Index width = count_of(op.dgamma);
  for (Index c = 0; c < width; ++c) {
    double gamma_sum = 0, beta_sum = 0;
    for (Index r = 0; r < count_of(op.rstd); ++r) {
      gamma_sum += dy[r * width + c] * (x[r * width + c] - mean[r]) * rstd[r];
      beta_sum += dy[r * width + c];
    }
    put(dgamma[c], gamma_sum, op.accumulate);
    if (kCentered) put(dbeta[c], beta_sum, op.accumulate);
  }
}

}  // namespace concertina::oracle
