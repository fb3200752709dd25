#include "parallel/runtime/buffer_pool.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace concertina {

void BufferPool::attach(Arena& arena, int count, std::size_t bytes, const char* name) {
  count_ = count;
  bytes_ = align_up(bytes);
  free_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) free_.push_back(arena.take_any(bytes, name));
}

void BufferPool::give(void* buffer) {
  free_.push_back(buffer);
  if (in_use() == 0) std::sort(free_.begin(), free_.end(), std::less<>());
}

void* BufferPool::take() {
  CONCERTINA_CHECK(!free_.empty(), "all {} buffers of a pool are in use", count_);
  void* buffer = free_.back();
  free_.pop_back();
  peak_ = std::max(peak_, in_use());
  return buffer;
}

}  // namespace concertina
