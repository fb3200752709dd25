// A digest of memory for detecting changes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/memory.h"

namespace concertina {

/// Returns the 64-bit XXH3 hash (Collet 2019) of `tensor` after all kernels issued so far, reading
/// it piece by piece into `scratch`. It misses a change with a probability of about 2^-64.
std::uint64_t digest_of(Memory& memory, View tensor, std::vector<std::byte>& scratch);

/// Returns scratch large enough for digest_of() to run without allocating.
std::vector<std::byte> digest_scratch(const Memory& memory);

}  // namespace concertina
