#include "allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local int made = 0;
}  // namespace

int concertina::emulation::allocations_made() {
  return made;
}

void* operator new(std::size_t bytes) {
  ++made;
  if (void* block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
