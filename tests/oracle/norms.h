// Layer norm and RMS norm, by their formulas: R rows, C width.
#pragma once

#include <cmath>

#include "tests/oracle/values.h"

namespace concertina::oracle {

inline void issue(const LayerNorm& op) {
  const Values x = values_of(op.x), gamma = values_of(op.gamma), beta = values_of(op.beta);
  Out y(op.y), mean(op.mean), rstd(op.rstd);
  const Index width = count_of(op.gamma);
  for (Index r = 0; r < count_of(op.mean); ++r) {
    const double* row = &x[r * width];
    double sum = 0, squares = 0;
    for (Index c = 0; c < width; ++c) sum += row[c];
    mean[r] = sum / static_cast<double>(width);
    for (Index c = 0; c < width; ++c) squares += std::pow(row[c] - mean[r], 2);
    rstd[r] = 1 / std::sqrt(squares / static_cast<double>(width) + op.eps);
    for (Index c = 0; c < width; ++c)
      y[r * width + c] = (row[c] - mean[r]) * rstd[r] * gamma[c] + beta[c];
  }
}

inline void issue(const RmsNorm& op) {
  const Values x = values_of(op.x), gamma = values_of(op.gamma);
  Out y(op.y), rstd(op.rstd);
  const Index width = count_of(op.gamma);
  for (Index r = 0; r < count_of(op.rstd); ++r) {
    double squares = 0;
    for (Index c = 0; c < width; ++c) squares += std::pow(x[r * width + c], 2);
    rstd[r] = 1 / std::sqrt(squares / static_cast<double>(width) + op.eps);
    for (Index c = 0; c < width; ++c) y[r * width + c] = x[r * width + c] * rstd[r] * gamma[c];
  }
}

/// Computes what LayerNormInput does, or RmsNormInput: there the mean is 0, and the gradient keeps
/// its own.
template <class Op>
void norm_input(const Op& op, const Values& mean, bool centred) {
  const Values dy = values_of(op.dy), x = values_of(op.x), gamma = values_of(op.gamma),
               rstd = values_of(op.rstd), residual = values_of(op.residual_grad);
  Out dx(op.dx);
  const Index width = count_of(op.gamma);
  const auto n = static_cast<double>(width);
  for (Index r = 0; r < count_of(op.rstd); ++r) {
    const auto xhat = [&](Index c) { return (x[r * width + c] - mean[r]) * rstd[r]; };
    const auto dxhat = [&](Index c) { return dy[r * width + c] * gamma[c]; };
    double sum = 0, dot = 0;
    for (Index c = 0; c < width; ++c) {
      sum += centred ? dxhat(c) : 0;
      dot += dxhat(c) * xhat(c);
    }
    for (Index c = 0; c < width; ++c)
      dx[r * width + c] = rstd[r] * (dxhat(c) - sum / n - xhat(c) * dot / n) +
                          (residual.empty() ? 0 : residual[r * width + c]);
  }
}

inline void issue(const LayerNormInput& op) {
  norm_input(op, values_of(op.mean), true);
}

inline void issue(const RmsNormInput& op) {
  norm_input(op, Values(op.rstd.count), false);
}

/// The column sums of dy times (x - mean) rstd, and of dy.
template <class Op>
void norm_weight(const Op& op, const Values& mean, Values& dgamma, Values* dbeta) {
  const Values dy = values_of(op.dy), x = values_of(op.x), rstd = values_of(op.rstd);
  const Index width = count_of(op.dgamma);
  for (Index c = 0; c < width; ++c) {
    double gamma_sum = 0, beta_sum = 0;
    for (Index r = 0; r < count_of(op.rstd); ++r) {
      gamma_sum += dy[r * width + c] * (x[r * width + c] - mean[r]) * rstd[r];
      beta_sum += dy[r * width + c];
    }
    put(dgamma[c], gamma_sum, op.accumulate);
    if (dbeta != nullptr) put((*dbeta)[c], beta_sum, op.accumulate);
  }
}

inline void issue(const LayerNormWeight& op) {
  Out dgamma(op.dgamma), dbeta(op.dbeta);
  norm_weight(op, values_of(op.mean), dgamma, &dbeta);
}

inline void issue(const RmsNormWeight& op) {
  Out dgamma(op.dgamma);
  norm_weight(op, Values(op.rstd.count), dgamma, nullptr);
}

}  // namespace concertina::oracle
