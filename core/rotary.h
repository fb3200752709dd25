// The angles of rotary position embeddings (Su et al. 2021), with scaling to longer contexts,
// shared by all backends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace concertina {

/// Which columns of a head rotate with the position, and how fast.
struct RotarySpec {
  enum class Scaling {
    none,
    linear,  // positions are divided by `factor` (Chen et al. 2023)
    llama3,  // scales wavelengths above original / low_factor fully, those below original /
             // high_factor not at all, and those between partially (Llama 3.1, Dubey et al. 2024)
    yarn     // likewise, by a pair's turns over `original` positions (fast_turns: not at all,
             // slow_turns: fully); multiplies cosine and sine by `magnitude` (Peng et al. 2023)
  };
  double theta = 0;          // base of the wavelengths; 0: no rotation
  std::int64_t columns = 0;  // rotated columns at the start of each head, even
  Scaling scaling = Scaling::none;
  double factor = 1;                       // ratio of the new context length to the original one
  double original = 0;                     // original context length
  double low_factor = 1, high_factor = 4;  // for llama3
  double fast_turns = 32, slow_turns = 1;  // for yarn
  double magnitude = 1;                    // for yarn
  bool operator==(const RotarySpec&) const = default;

  bool turns() const { return theta > 0; }
};

namespace rotary {

/// Returns the fraction, in [0, 1], of a pair's frequency that is not scaled; the rest is divided
/// by the factor.
inline double kept_share(const RotarySpec& spec, double frequency, std::int64_t pair) {
  constexpr double kTurn = 2 * std::numbers::pi;
  switch (spec.scaling) {
    case RotarySpec::Scaling::none:
      return 1;
    case RotarySpec::Scaling::linear:
      return 0;
    case RotarySpec::Scaling::llama3: {
      const double turns = spec.original * frequency / kTurn;
      return std::clamp((turns - spec.low_factor) / (spec.high_factor - spec.low_factor), 0.0, 1.0);
    }
    case RotarySpec::Scaling::yarn: {
      const auto d = static_cast<double>(spec.columns);
      // The (fractional) pair that makes this many turns; rounded below, as in the authors' code.
      const auto pair_of = [&](double turns) {
        return d * std::log(spec.original / (turns * kTurn)) / (2 * std::log(spec.theta));
      };
      const double low = std::max(std::floor(pair_of(spec.fast_turns)), 0.0);
      double high = std::min(std::ceil(pair_of(spec.slow_turns)), d - 1);
      if (low == high) high += 0.001;
      return 1 - std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
    }
  }
  return 1;
}

}  // namespace rotary

/// Returns the rotation of pair `pair` of a head in radians per position.
inline double rotary_frequency(const RotarySpec& spec, std::int64_t pair) {
  const double frequency =
      std::pow(spec.theta, -2.0 * static_cast<double>(pair) / static_cast<double>(spec.columns));
  if (spec.scaling == RotarySpec::Scaling::none) return frequency;
  const double kept = rotary::kept_share(spec, frequency, pair);
  return kept * frequency + (1 - kept) * frequency / spec.factor;
}

}  // namespace concertina
