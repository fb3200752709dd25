// Initial weights. Invariant: an element's value depends on the seed, its tensor and its index
// alone, so any layout starts from the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/model_spec.h"

namespace concertina {

/// Writes elements [begin, begin + out.size()) of `bucket`; padding becomes zero. Philox counter:
/// (high word of the index, tensor's parameter index, tensor's first unit, low word).
void initialize(const Bucket& bucket, std::uint64_t seed, std::size_t begin, std::span<float> out);

}  // namespace concertina
