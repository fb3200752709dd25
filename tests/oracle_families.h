// The kernels that Llama, BERT and ViT have and GPT-2 has not, as oracle_kernels.h has the others.
// Invariant: straight from the formulas; nothing is fused, blocked or recomputed cleverly.
//
// Legend as in core/ops.h: R rows, S samples, T tokens, C width, D head_dim.
#pragma once

#include "tests/oracle_kernels.h"

namespace concertina::oracle {

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

template <class T>
void rotary_table(double theta, Index tokens, Index head_dim, T* table) {
  const Index half = head_dim / 2;
  for (Index t = 0; t < tokens; ++t)
    for (Index i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) /
          std::pow(theta, static_cast<double>(2 * i) / static_cast<double>(head_dim));
      table[t * head_dim + i] = static_cast<T>(std::cos(angle));
      table[t * head_dim + half + i] = static_cast<T>(std::sin(angle));
    }
}

/// q cos + rotate_half(q) sin, as in Hugging Face's Llama.
template <class T, class Table>
void rotate(Index rows, Index stride, Index heads, Index head_dim, Index tokens, const Table* table,
            bool inverse, T* x) {
  const Index half = head_dim / 2;
  for (Index r = 0; r < rows; ++r)
    for (Index h = 0; h < heads; ++h) {
      T* head = x + r * stride + h * head_dim;
      const std::vector<T> was(head, head + head_dim);
      for (Index i = 0; i < head_dim; ++i) {
        const Table* angles = table + r % tokens * head_dim + i % half;
        const double partner = i < half
                                   ? -static_cast<double>(was[static_cast<std::size_t>(i + half)])
                                   : static_cast<double>(was[static_cast<std::size_t>(i - half)]);
        const double sine = static_cast<double>(angles[half]) * (inverse ? -1 : 1);
        head[i] = static_cast<T>(static_cast<double>(was[static_cast<std::size_t>(i)]) *
                                     static_cast<double>(angles[0]) +
                                 partner * sine);
      }
    }
}

inline double silu(double x) {
  return x / (1 + std::exp(-x));
}

template <class T>
void gated_silu(Index rows, Index width, const T* u, T* y) {
  for (Index r = 0; r < rows; ++r)
    for (Index f = 0; f < width; ++f)
      y[r * width + f] = static_cast<T>(silu(static_cast<double>(u[r * 2 * width + f])) *
                                        static_cast<double>(u[(r * 2 + 1) * width + f]));
}

template <class T>
void gated_silu_backward(Index rows, Index width, const T* dy, const T* u, T* du) {
  for (Index r = 0; r < rows; ++r)
    for (Index f = 0; f < width; ++f) {
      const auto gate = static_cast<double>(u[r * 2 * width + f]),
                 up = static_cast<double>(u[(r * 2 + 1) * width + f]),
                 grad = static_cast<double>(dy[r * width + f]);
      const double sigmoid = 1 / (1 + std::exp(-gate));
      du[r * 2 * width + f] = static_cast<T>(grad * up * sigmoid * (1 + gate * (1 - sigmoid)));
      du[(r * 2 + 1) * width + f] = static_cast<T>(grad * silu(gate));
    }
}

template <class T>
void image_patches(Index samples, Index channels, Index height, Index width, Index patch,
                   const T* image, T* patches) {
  for (Index s = 0; s < samples; ++s)
    for (Index row = 0; row < height / patch; ++row)
      for (Index column = 0; column < width / patch; ++column)
        for (Index c = 0; c < channels; ++c)
          for (Index y = 0; y < patch; ++y)
            for (Index x = 0; x < patch; ++x)
              *patches++ = image[((s * channels + c) * height + row * patch + y) * width +
                                 column * patch + x];
}

/// places: of positions, N + 1.
template <class T>
void join_class(Index samples, Index places, Index width, const T* x, const T* cls, const T* wpe,
                T* y) {
  for (Index s = 0; s < samples; ++s)
    for (Index n = 0; n < places; ++n)
      for (Index c = 0; c < width; ++c)
        *y++ = static_cast<T>(
            static_cast<double>(n == 0 ? cls[c] : x[(s * (places - 1) + n - 1) * width + c]) +
            static_cast<double>(wpe[n * width + c]));
}

template <class T>
void join_class_weight(Index samples, Index places, Index width, const T* dy, T* dcls, T* dwpe,
                       bool accumulate) {
  for (Index n = 0; n < places; ++n)
    for (Index c = 0; c < width; ++c) {
      double sum = 0;
      for (Index s = 0; s < samples; ++s)
        sum += static_cast<double>(dy[(s * places + n) * width + c]);
      put(dwpe[n * width + c], sum, accumulate);
      if (n == 0) put(dcls[c], sum, accumulate);
    }
}

/// The loss of a sample's logits[T,2], by the formula of cross_entropy() per side.
template <class T>
void span_cross_entropy(Index samples, Index tokens, T* logits, const std::int32_t* starts,
                        const std::int32_t* ends, double loss_scale, bool training, T* row_loss) {
  for (Index s = 0; s < samples; ++s) {
    double loss = 0;
    for (const Index side : {0, 1}) {
      T* sample = logits + s * 2 * tokens + side;
      std::vector<T> row(static_cast<std::size_t>(tokens));
      for (Index t = 0; t < tokens; ++t) row[static_cast<std::size_t>(t)] = sample[2 * t];
      std::int32_t target = (side == 0 ? starts : ends)[s];
      if (target >= tokens) target = -1;
      T half;
      cross_entropy(1, tokens, row.data(), &target, loss_scale / 2, training, &half);
      loss += static_cast<double>(half) / 2;
      for (Index t = 0; t < tokens; ++t) sample[2 * t] = row[static_cast<std::size_t>(t)];
    }
    row_loss[s] = static_cast<T>(loss);
  }
}

}  // namespace concertina::oracle
