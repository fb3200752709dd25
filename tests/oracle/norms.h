// Layer norm and RMS norm, by their formulas: R rows, C width.
#pragma once

#include <cmath>
#include <vector>

#include "tests/oracle/values.h"

namespace concertina::oracle {

template <class T>
void layer_norm(Index rows, Index width, const T* x, const T* gamma, const T* beta, double eps,
                T* y, T* mean, T* rstd) {
  for (Index r = 0; r < rows; ++r) {
    double sum = 0, squares = 0;
    for (Index c = 0; c < width; ++c) sum += static_cast<double>(x[r * width + c]);
    const double m = sum / static_cast<double>(width);
    for (Index c = 0; c < width; ++c)
      squares += std::pow(static_cast<double>(x[r * width + c]) - m, 2);
    const double s = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (Index c = 0; c < width; ++c)
      y[r * width + c] = static_cast<T>((static_cast<double>(x[r * width + c]) - m) * s *
                                            static_cast<double>(gamma[c]) +
                                        static_cast<double>(beta[c]));
    mean[r] = static_cast<T>(m);
    rstd[r] = static_cast<T>(s);
  }
}

/// residual_grad may be null.
template <class T>
void layer_norm_backward_input(Index rows, Index width, const T* dy, const T* x, const T* gamma,
                               const T* mean, const T* rstd, const T* residual_grad, T* dx) {
  const auto n = static_cast<double>(width);
  for (Index r = 0; r < rows; ++r) {
    const auto m = static_cast<double>(mean[r]), s = static_cast<double>(rstd[r]);
    const auto xhat = [&](Index c) { return (static_cast<double>(x[r * width + c]) - m) * s; };
    const auto dxhat = [&](Index c) {
      return static_cast<double>(dy[r * width + c]) * static_cast<double>(gamma[c]);
    };
    double sum = 0, dot = 0;
    for (Index c = 0; c < width; ++c) {
      sum += dxhat(c);
      dot += dxhat(c) * xhat(c);
    }
    for (Index c = 0; c < width; ++c) {  // one element at a time: dx may be dy
      const double grad = s * (dxhat(c) - sum / n - xhat(c) * dot / n);
      const double skip =
          residual_grad == nullptr ? 0 : static_cast<double>(residual_grad[r * width + c]);
      dx[r * width + c] = static_cast<T>(skip + grad);
    }
  }
}

template <class T>
void layer_norm_backward_weight(Index rows, Index width, const T* dy, const T* x, const T* mean,
                                const T* rstd, T* dgamma, T* dbeta, bool accumulate) {
  for (Index c = 0; c < width; ++c) {
    double gamma_sum = 0, beta_sum = 0;
    for (Index r = 0; r < rows; ++r) {
      const auto grad = static_cast<double>(dy[r * width + c]);
      gamma_sum += grad * (static_cast<double>(x[r * width + c]) - static_cast<double>(mean[r])) *
                   static_cast<double>(rstd[r]);
      beta_sum += grad;
    }
    put(dgamma[c], gamma_sum, accumulate);
    put(dbeta[c], beta_sum, accumulate);
  }
}

template <class T>
void rms_norm(Index rows, Index width, const T* x, const T* gamma, double eps, T* y, T* rstd) {
  for (Index r = 0; r < rows; ++r) {
    double squares = 0;
    for (Index c = 0; c < width; ++c) squares += std::pow(static_cast<double>(x[r * width + c]), 2);
    const double s = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (Index c = 0; c < width; ++c)
      y[r * width + c] =
          static_cast<T>(static_cast<double>(x[r * width + c]) * s * static_cast<double>(gamma[c]));
    rstd[r] = static_cast<T>(s);
  }
}

template <class T>
void rms_norm_backward_input(Index rows, Index width, const T* dy, const T* x, const T* gamma,
                             const T* rstd, const T* residual_grad, T* dx) {
  for (Index r = 0; r < rows; ++r) {
    const auto s = static_cast<double>(rstd[r]);
    const auto xhat = [&](Index c) { return static_cast<double>(x[r * width + c]) * s; };
    const auto dxhat = [&](Index c) {
      return static_cast<double>(dy[r * width + c]) * static_cast<double>(gamma[c]);
    };
    double dot = 0;
    for (Index c = 0; c < width; ++c) dot += dxhat(c) * xhat(c);
    for (Index c = 0; c < width; ++c) {  // one element at a time: dx may be dy
      const double grad = s * (dxhat(c) - xhat(c) * dot / static_cast<double>(width));
      const double skip =
          residual_grad == nullptr ? 0 : static_cast<double>(residual_grad[r * width + c]);
      dx[r * width + c] = static_cast<T>(skip + grad);
    }
  }
}

template <class T>
void rms_norm_backward_weight(Index rows, Index width, const T* dy, const T* x, const T* rstd,
                              T* dgamma, bool accumulate) {
  for (Index c = 0; c < width; ++c) {
    double sum = 0;
    for (Index r = 0; r < rows; ++r)
      sum += static_cast<double>(dy[r * width + c]) * static_cast<double>(x[r * width + c]) *
             static_cast<double>(rstd[r]);
    put(dgamma[c], sum, accumulate);
  }
}

inline void issue(const LayerNorm& op) {
  const std::vector<float> in = to_floats(op.x);
  Out out(op.y);
  layer_norm(rows_of(op.mean), rows_of(op.gamma), in.data(), op.gamma.f32(), op.beta.f32(),
             static_cast<double>(op.eps), out.data(), op.mean.f32(), op.rstd.f32());
}

inline void issue(const LayerNormInput& op) {
  const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x),
                           residual = to_floats(op.residual_grad);
  Out out(op.dx);
  layer_norm_backward_input(rows_of(op.mean), rows_of(op.gamma), grad.data(), in.data(),
                            op.gamma.f32(), op.mean.f32(), op.rstd.f32(),
                            residual.empty() ? nullptr : residual.data(), out.data());
}

inline void issue(const LayerNormWeight& op) {
  const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x);
  layer_norm_backward_weight(rows_of(op.mean), rows_of(op.dgamma), grad.data(), in.data(),
                             op.mean.f32(), op.rstd.f32(), op.dgamma.f32(), op.dbeta.f32(),
                             op.accumulate);
}

inline void issue(const RmsNorm& op) {
  const std::vector<float> in = to_floats(op.x);
  Out out(op.y);
  rms_norm(rows_of(op.rstd), rows_of(op.gamma), in.data(), op.gamma.f32(),
           static_cast<double>(op.eps), out.data(), op.rstd.f32());
}

inline void issue(const RmsNormInput& op) {
  const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x),
                           residual = to_floats(op.residual_grad);
  Out out(op.dx);
  rms_norm_backward_input(rows_of(op.rstd), rows_of(op.gamma), grad.data(), in.data(),
                          op.gamma.f32(), op.rstd.f32(),
                          residual.empty() ? nullptr : residual.data(), out.data());
}

inline void issue(const RmsNormWeight& op) {
  const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.x);
  rms_norm_backward_weight(rows_of(op.rstd), rows_of(op.dgamma), grad.data(), in.data(),
                           op.rstd.f32(), op.dgamma.f32(), op.accumulate);
}

}  // namespace concertina::oracle
