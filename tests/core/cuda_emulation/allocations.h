// Counts what a test program takes from the heap by operator new.
#pragma once

namespace concertina::emulation {

/// By this thread.
int allocations_made();

}  // namespace concertina::emulation
