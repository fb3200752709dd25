// The random words of core/rng.h, which Random123 generates when they are used.
#pragma once

#include <Random123/philox.h>

#include "core/cuda/kernels/kernels.h"
#include "core/rng.h"

namespace concertina::cuda {

/// The constants of a DropoutMask, passed to kernels by value.
struct DropoutRule {
  std::uint32_t key0, key1, step, sample, unit, threshold;
  float scale;

  /// Takes step and sample from `place`, unless it is null.
  __device__ void move_to(const MaskPlace* place) {
    if (place != nullptr) step = place->step, sample = place->sample;
  }
  /// Returns the words for elements [4 counter, 4 counter + 4) of sample `at` of the microbatch.
  __device__ r123::Philox4x32::ctr_type words(std::uint32_t at, std::uint32_t counter) const {
    const r123::Philox4x32::key_type key{{key0, key1}};
    return r123::Philox4x32()(r123::Philox4x32::ctr_type{{step, sample + at, unit, counter}}, key);
  }
};

inline DropoutRule rule_of(const DropoutMask& mask, Purpose purpose) {
  const auto key = Rng(mask.at.seed, purpose).key();
  return {key[0],       key[1],           mask.at.step, mask.at.sample,
          mask.at.unit, mask.threshold(), mask.scale()};
}

}  // namespace concertina::cuda
