#include "core/arena.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace concertina {

Arena::~Arena() {
  if (block_ != nullptr) memory_->release(block_, capacity_);
}

Arena::Arena(Arena&& other) noexcept
    : memory_(other.memory_),
      block_(std::exchange(other.block_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      used_(std::exchange(other.used_, 0)),
      written_(std::exchange(other.written_, false)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(block_, other.block_);
  std::swap(capacity_, other.capacity_);
  std::swap(used_, other.used_);
  std::swap(written_, other.written_);
  return *this;
}

void Arena::reserve(std::size_t bytes, Memory& memory) {
  CONCERTINA_CHECK(block_ == nullptr, "arena reserved twice");
  const std::size_t wanted = std::max<std::size_t>(align_up(bytes), kAlignment);
  block_ = static_cast<std::byte*>(memory.allocate(wanted, "arena"));
  memory_ = &memory;
  capacity_ = wanted;
}

bool Arena::renew(std::size_t bytes) {
  const std::size_t wanted = std::max<std::size_t>(align_up(bytes), kAlignment);
  if (block_ == nullptr || wanted > capacity_ || !memory_->trim(block_, capacity_, wanted))
    return false;
  capacity_ = wanted;
  used_ = 0;
  written_ = true;
  return true;
}

void* Arena::take(std::size_t bytes, std::string_view name) {
  void* at = take_any(bytes, name);
  if (written_) std::memset(at, 0, bytes);
  return at;
}

void* Arena::take_any(std::size_t bytes, std::string_view name) {
  const std::size_t padded = align_up(bytes);
  CONCERTINA_CHECK(used_ + padded <= capacity_, "{}: {} bytes do not fit, {} of {} are in use",
                   name, bytes, used_, capacity_);
  void* at = block_ + used_;
  used_ += padded;
  return at;
}

View Arena::take(std::size_t count, DType dtype, std::string_view name) {
  return {take(count * size_of(dtype), name), count, dtype};
}

}  // namespace concertina
