// A digest of memory, to find out whether it has changed.
#pragma once

#include <cstdint>
#include <vector>

#include "core/memory.h"

namespace concertina {

/// XXH3 of the elements of `tensor` (64 bits; Collet 2019), after all kernels issued so far, in
/// pieces of `scratch`. It misses a change with a chance of about 2^-64.
std::uint64_t digest_of(Memory& memory, View tensor, std::vector<std::byte>& scratch);

/// What `scratch` has to have: digest_of() allocates nothing then.
std::vector<std::byte> digest_scratch(const Memory& memory);

}  // namespace concertina
