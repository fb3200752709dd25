#include "core/rng.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace concertina {

std::array<std::uint32_t, 2> Rng::key() const {
  // Philox4x32 has a 64-bit key. An odd constant mixes the purpose into the high word.
  return {static_cast<std::uint32_t>(seed_),
          static_cast<std::uint32_t>(seed_ >> 32) ^
              (static_cast<std::uint32_t>(purpose_) * 0x9E3779B9U)};
}

std::array<std::uint32_t, 4> Rng::words(std::uint32_t step, std::uint32_t sample,
                                        std::uint32_t unit, std::uint32_t element) const {
  const r123::Philox4x32::ctr_type counter{{step, sample, unit, element}};
  const auto [low, high] = key();
  const auto result = r123::Philox4x32()(counter, {{low, high}});
  return {result[0], result[1], result[2], result[3]};
}

float Rng::uniform(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
                   std::uint32_t element) const {
  return static_cast<float>(words(step, sample, unit, element)[0] >> 8) * 0x1p-24F;
}

float Rng::normal(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
                  std::uint32_t element) const {
  const auto word = words(step, sample, unit, element);
  // u1 is in (0, 1], so its logarithm is finite. With double, all libms round to the same float.
  const double u1 = (static_cast<double>(word[0]) + 1.0) * 0x1p-32;
  const double u2 = static_cast<double>(word[1]) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * std::numbers::pi * u2));
}

}  // namespace concertina
