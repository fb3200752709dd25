// A fixed number of equal buffers, handed out one at a time.
// Invariants: the pool never grows, and it records its peak use. Buffers are reused last in, first
// out, but sorted whenever all are back, so every step of a plan uses the same buffers.
#pragma once

#include <cstddef>
#include <vector>

#include "core/arena.h"

namespace concertina {

class BufferPool {
 public:
  void attach(Arena& arena, int count, std::size_t bytes, const char* name);
  void* take();
  void give(void* buffer);
  bool empty() const { return free_.empty(); }
  int peak() const { return peak_; }
  int in_use() const { return count_ - static_cast<int>(free_.size()); }
  std::size_t bytes_in_use() const { return static_cast<std::size_t>(in_use()) * bytes_; }

 private:
  std::vector<void*> free_;
  int count_ = 0, peak_ = 0;
  std::size_t bytes_ = 0;  // size of a buffer as counted by the arena
};

}  // namespace concertina
