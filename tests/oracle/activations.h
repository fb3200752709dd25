// Formulas of activation functions and rotary embedding: R rows, T tokens, D head_dim.
#pragma once

#include <cmath>
#include <numbers>

#include "tests/oracle/products.h"
#include "tests/oracle/values.h"

namespace concertina::oracle {

/// Returns the frequency of pair i, scaled as in spec; in terms of wavelengths, as in publications.
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

inline void issue(const RotaryTable& op) {
  const Index columns = op.spec.columns, half = columns / 2;
  Out table(op.table);
  for (Index t = 0; t < op.tokens; ++t)
    for (Index i = 0; i < half; ++i) {
      const double angle = static_cast<double>(t) * stretched(op.spec, i);
      table[t * columns + i] = std::cos(angle);
      table[t * columns + half + i] = std::sin(angle);
    }
}

/// Computes q cos + rotate_half(q) sin of the first columns of each head, as Hugging Face's Llama.
inline void issue(const Rotate& op) {
  const Index columns = op.columns, half = columns / 2;
  const Values was = values_of(op.x), table = values_of(op.table);
  Out x(op.x);
  for (Index r = 0; r < count_of(op.x) / op.stride; ++r)
    for (Index h = 0; h < op.heads; ++h)
      for (Index i = 0; i < columns; ++i) {
        const Index at = r * op.stride + h * op.head_dim;
        const Index angle = r % op.tokens * columns + i % half;
        const double partner = i < half ? -was[at + i + half] : was[at + i - half];
        const double sine = table[angle + half] * (op.inverse ? -1 : 1);
        x[at + i] = was[at + i] * table[angle] + partner * sine;
      }
}

inline void issue(const GatedSilu& op) {
  const Values u = values_of(op.u);
  Out y(op.y);
  for (Index r = 0; r < count_of(op.y) / op.width; ++r)
    for (Index f = 0; f < op.width; ++f)
      y[r * op.width + f] = silu(u[r * 2 * op.width + f]) * u[(r * 2 + 1) * op.width + f];
}

inline void issue(const GatedSiluInput& op) {
  const Values dy = values_of(op.dy), u = values_of(op.u);
  Out du(op.du);
  for (Index r = 0; r < count_of(op.dy) / op.width; ++r)
    for (Index f = 0; f < op.width; ++f) {
      const Index gate = r * 2 * op.width + f, up = gate + op.width;
      const double grad = dy[r * op.width + f];
      du[gate] = grad * u[up] * silu_slope(u[gate]);
      du[up] = grad * silu(u[gate]);
    }
}

inline void issue(const Tanh& op) {
  Out y(op.y);
  const Values x = values_of(op.x);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::tanh(x[i]);
}

inline void issue(const TanhInput& op) {
  const Values dy = values_of(op.dy), y = values_of(op.y);
  Out dx(op.dx);
  for (std::size_t i = 0; i < dy.size(); ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

inline void issue(const ActivationInput& op) {
  const Values slope = values_of(op.aux), dy = values_of(op.dy);
  Out dx(op.dx);
  for (std::size_t i = 0; i < dy.size(); ++i) dx[i] = dy[i] * slope[i];
}

}  // namespace concertina::oracle
