#include "core/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace concertina {

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
  }
  return 0;
}

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "fp32";
    case DType::i32:
      return "int32";
    case DType::bf16:
      return "bf16";
  }
  return "?";
}

View View::slice(std::size_t begin, std::size_t n) const {
  CONCERTINA_CHECK(begin + n <= count, "slice [{}, {}) of {} elements", begin, begin + n, count);
  return {static_cast<std::byte*>(data) + begin * size_of(dtype), n, dtype};
}

void View::expect(DType wanted) const {
  CONCERTINA_CHECK(dtype == wanted, "{} read as {}", name_of(dtype), name_of(wanted));
}

std::vector<float> to_floats(View view) {
  std::vector<float> values(view.count);
  const auto copy = [&](const auto* from) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_float(from[i]);
  };
  if (view.dtype == DType::bf16)
    copy(view.as<Bf16>());
  else
    copy(view.f32());
  return values;
}

Arena::~Arena() {
  if (block_ != nullptr) ::munmap(block_, capacity_);
}

Arena::Arena(Arena&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)),
      used_(std::exchange(other.used_, 0)),
      peak_(std::exchange(other.peak_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(capacity_, other.capacity_);
  std::swap(used_, other.used_);
  std::swap(peak_, other.peak_);
  return *this;
}

void Arena::reserve(std::size_t bytes) {
  CONCERTINA_CHECK(block_ == nullptr, "arena reserved twice");
  capacity_ = std::max<std::size_t>(align_up(bytes), kAlignment);
  void* block =
      ::mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) {
    const std::size_t wanted = std::exchange(capacity_, 0);
    throw_failure(fmt::format("cannot allocate {} bytes of memory", wanted), "arena",
                  "a smaller model, batch or more stages; `concertina plan` prints what is needed");
  }
  // Few page faults and TLB misses: buffers are large and live for the whole run.
  ::madvise(block, capacity_, MADV_HUGEPAGE);
  block_ = static_cast<std::byte*>(block);
}

void* Arena::take(std::size_t bytes, std::string_view name) {
  const std::size_t padded = align_up(bytes);
  CONCERTINA_CHECK(used_ + padded <= capacity_, "{}: {} bytes do not fit, {} of {} are taken", name,
                   bytes, used_, capacity_);
  void* at = block_ + used_;
  used_ += padded;
  peak_ = std::max(peak_, used_);
  return at;
}

View Arena::take(std::size_t count, DType dtype, std::string_view name) {
  return {take(count * size_of(dtype), name), count, dtype};
}

}  // namespace concertina
