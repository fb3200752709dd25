// Activation functions and rotary embedding, by their formulas: R rows, T tokens, D head_dim.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "tests/oracle/products.h"
#include "tests/oracle/values.h"

namespace concertina::oracle {

/// The frequency of pair i, stretched as spec says; by wavelengths, as the texts about it have it.
inline double stretched(const RotarySpec& spec, Index i) {
  const double wavelength =
      2 * std::numbers::pi *
      std::pow(spec.theta, static_cast<double>(2 * i) / static_cast<double>(spec.columns));
  const double plain = 2 * std::numbers::pi / wavelength, turns = spec.original / wavelength;
  if (spec.scaling == RotarySpec::Scaling::linear) return plain / spec.factor;
  if (spec.scaling != RotarySpec::Scaling::llama3) return plain;  // yarn: published_test.cc
  if (turns < spec.low_factor) return plain / spec.factor;
  if (turns > spec.high_factor) return plain;
  const double smooth = (turns - spec.low_factor) / (spec.high_factor - spec.low_factor);
  return (1 - smooth) * plain / spec.factor + smooth * plain;
}

template <class T>
void rotary_table(const RotarySpec& spec, Index tokens, T* table) {
  const Index columns = spec.columns, half = columns / 2;
  for (Index t = 0; t < tokens; ++t)
    for (Index i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) * stretched(spec, i);
      table[t * columns + i] = static_cast<T>(std::cos(angle));
      table[t * columns + half + i] = static_cast<T>(std::sin(angle));
    }
}

/// q cos + rotate_half(q) sin of the first columns of each head, as in Hugging Face's Llama.
template <class T, class Table>
void rotate(Index rows, Index stride, Index heads, Index head_dim, Index columns, Index tokens,
            const Table* table, bool inverse, T* x) {
  const Index half = columns / 2;
  for (Index r = 0; r < rows; ++r)
    for (Index h = 0; h < heads; ++h) {
      T* head = x + r * stride + h * head_dim;
      const std::vector<T> was(head, head + columns);
      for (Index i = 0; i < columns; ++i) {
        const Table* angles = table + r % tokens * columns + i % half;
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

inline void issue(const RotaryTable& op) {
  rotary_table(op.spec, op.tokens, op.table.f32());
}

inline void issue(const Rotate& op) {
  Out x(op.x);
  rotate(rows_of(op.x) / op.stride, op.stride, op.heads, op.head_dim, op.columns, op.tokens,
         op.table.f32(), op.inverse, x.data());
}

inline void issue(const GatedSilu& op) {
  const std::vector<float> in = to_floats(op.u);
  Out out(op.y);
  gated_silu(rows_of(op.y) / op.width, op.width, in.data(), out.data());
}

inline void issue(const GatedSiluInput& op) {
  const std::vector<float> grad = to_floats(op.dy), in = to_floats(op.u);
  Out out(op.du);
  gated_silu_backward(rows_of(op.dy) / op.width, op.width, grad.data(), in.data(), out.data());
}

inline void issue(const Tanh& op) {
  Out out(op.y);
  const std::vector<float> in = to_floats(op.x);
  for (std::size_t i = 0; i < in.size(); ++i)
    out[i] = static_cast<float>(std::tanh(static_cast<double>(in[i])));
}

inline void issue(const TanhInput& op) {
  const std::vector<float> grad = to_floats(op.dy), value = to_floats(op.y);
  Out out(op.dx);
  for (std::size_t i = 0; i < grad.size(); ++i)
    out[i] = static_cast<float>(static_cast<double>(grad[i]) *
                                (1 - std::pow(static_cast<double>(value[i]), 2)));
}

inline void issue(const ActivationInput& op) {
  const std::vector<float> slope = to_floats(op.aux), dy = to_floats(op.dy);
  Out out(op.dx);
  for (std::size_t i = 0; i < dy.size(); ++i)
    out[i] = static_cast<float>(static_cast<double>(dy[i]) * static_cast<double>(slope[i]));
}

}  // namespace concertina::oracle
