// The one block of memory that a rank's tensors share.
// Invariant: an Arena never grows after `reserve`; a take beyond it is an error that names the
// buffer, so a step cannot allocate by accident.
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

  /// Allocates the block, zeroed. Once only. `memory` outlives the arena.
  void reserve(std::size_t bytes, Memory& memory = host_memory());
  /// Nothing is taken any more, of a block of `bytes`: the first ones of this block, whose pages a
  /// new one would have to get from the system one by one. False where that cannot be.
  bool renew(std::size_t bytes);
  /// The next `bytes`, zeroed and aligned to kAlignment; `name` is for the error when it does not
  /// fit.
  void* take(std::size_t bytes, std::string_view name);
  /// The same for what is written before it is read: its content is any.
  void* take_any(std::size_t bytes, std::string_view name);
  View take(std::size_t count, DType dtype, std::string_view name);

  /// The start of the block; null before `reserve`.
  void* data() const { return block_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t used() const { return used_; }

 private:
  Memory* memory_ = nullptr;
  std::byte* block_ = nullptr;
  std::size_t capacity_ = 0, used_ = 0;
  bool written_ = false;  // by what had it before
};

}  // namespace concertina
