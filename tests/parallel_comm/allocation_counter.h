// Counts the calling thread's heap allocations through operator new.
// Invariant: linking allocation_counter.cc replaces operator new in the whole program.
#pragma once

#include <cstddef>

namespace concertina::test {

/// Returns the number of calls of any operator new by this thread so far.
std::size_t allocations();

}  // namespace concertina::test
