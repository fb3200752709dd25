// Element types, and nonowning views of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/bf16.h"

namespace concertina {

enum class DType : std::uint8_t { f32, bf16, i32 };

std::size_t size_of(DType type);
std::string_view name_of(DType type);

/// Alignment and padding of every buffer in bytes: a cache line and an AVX-512 register.
inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t align_up(std::size_t bytes, std::size_t to = kAlignment) {
  return (bytes + to - 1) / to * to;
}

/// Number of elements of a tensor of this shape.
std::int64_t elements_of(std::span<const std::int64_t> shape);

template <class T>
inline constexpr DType kTypeOf = DType::f32;
template <>
inline constexpr DType kTypeOf<Bf16> = DType::bf16;
template <>
inline constexpr DType kTypeOf<std::int32_t> = DType::i32;

/// `count` elements of `dtype` at `data`, without ownership. An empty view has data == null.
struct View {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;

  bool empty() const { return data == nullptr; }
  std::size_t bytes() const { return count * size_of(dtype); }
  /// Returns the elements as a typed pointer; null if empty.
  template <class T>
  T* as() const {
    if (dtype != kTypeOf<T> && !empty()) expect(kTypeOf<T>);
    return static_cast<T*>(data);
  }
  float* f32() const { return as<float>(); }
  std::int32_t* i32() const { return as<std::int32_t>(); }
  /// Returns elements [begin, begin + n).
  View slice(std::size_t begin, std::size_t n) const;

 private:
  void expect(DType wanted) const;
};

/// Returns a copy of the elements of an fp32 or bf16 view as floats.
std::vector<float> to_floats(View view);

}  // namespace concertina
