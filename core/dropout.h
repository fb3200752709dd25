// Which activations dropout keeps (Srivastava et al. 2014).
// Invariant: a function of seed, step, sample, unit and element alone (core/rng.h), the same bits
// on every backend: no mask is stored, each kernel that needs it makes it again.
#pragma once

#include <cstdint>

#include "core/rng.h"

namespace concertina {

/// Element e of a sample is dropped where word e % 4 of Rng{seed, Purpose::dropout}.words(step,
/// sample, unit, e / 4) is below threshold().
struct DropoutMask {
  double share = 0;  // of what is dropped, [0, 1)
  RandomAt at;
  std::int64_t sample_elements = 0;  // T C, at most 2^34

  std::uint32_t threshold() const { return static_cast<std::uint32_t>(share * 0x1p32); }
  /// The factor of what is kept, so that the expectation stays.
  float scale() const { return static_cast<float>(1 / (1 - share)); }
};

}  // namespace concertina
