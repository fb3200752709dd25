// The single block of memory that a rank's tensors share.
// Invariant: an Arena never grows after `reserve`. Taking more is an error that names the buffer,
// so a step cannot allocate by accident.
#pragma once

#include "core/memory.h"

namespace concertina {

/// Bump allocator over one block.
class Arena {
 public:
  Arena() = default;
  explicit Arena(std::size_t bytes, Memory& memory = host_memory()) { reserve(bytes, memory); }
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Allocates the block, zeroed. May be called only once. `memory` must outlive the arena.
  void reserve(std::size_t bytes, Memory& memory = host_memory());
  /// Empties the arena and shrinks its block to `bytes`, keeping pages that a new block would have
  /// to fault in one by one. Returns false if that is not possible.
  bool renew(std::size_t bytes);
  /// Returns the next `bytes` bytes, zeroed and aligned to kAlignment. `name` appears in the error
  /// if they do not fit.
  void* take(std::size_t bytes, std::string_view name);
  /// Like take(), but with unspecified contents, for buffers that are written before they are read.
  void* take_any(std::size_t bytes, std::string_view name);
  View take(std::size_t count, DType dtype, std::string_view name);

  /// Returns the start of the block; null before `reserve`.
  void* data() const { return block_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t used() const { return used_; }

 private:
  Memory* memory_ = nullptr;
  std::byte* block_ = nullptr;
  std::size_t capacity_ = 0, used_ = 0;
  bool written_ = false;  // by the previous users of the memory
};

}  // namespace concertina
