// Memory for tests: aligned as backends expect, poisoned, and guarded against writes past its end.
// Invariant: the test fails when a Buffer with an overwritten guard is destroyed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "tests/assign.h"

namespace concertina {

inline constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

class Buffer {
 public:
  /// Allocates `count` elements with all bits set: NaN, or -1.
  explicit Buffer(std::size_t count = 0, DType dtype = DType::f32)
      : view_{std::aligned_alloc(kAlignment, align_up(count * size_of(dtype) + kGuard)), count,
              dtype},
        memory_(view_.data) {
    std::memset(view_.data, 0xFF, view_.bytes());
    std::memset(guard(), kGuardValue, kGuard);
  }
  explicit Buffer(const std::vector<float>& values, DType dtype = DType::f32)
      : Buffer(values.size(), dtype) {
    assign(view_, values);
  }
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  ~Buffer() {
    for (std::size_t i = 0; memory_ != nullptr && i < kGuard; ++i)
      EXPECT_EQ(guard()[i], kGuardValue) << i << " bytes past " << view_.bytes();
  }

  View view() const { return view_; }
  float* data() const { return view_.f32(); }
  std::size_t size() const { return view_.count; }
  std::vector<float> values() const { return to_floats(view_); }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr unsigned char kGuardValue = 0x45;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  unsigned char* guard() const { return static_cast<unsigned char*>(view_.data) + view_.bytes(); }
  View view_;
  std::unique_ptr<void, Free> memory_;
};

/// Returns a poisoned Buffer of at least `bytes`.
inline Buffer buffer_of_bytes(std::size_t bytes) {
  return Buffer((bytes + 3) / 4);
}

/// Generates reproducible contents.
class Data {
 public:
  explicit Data(unsigned seed) : engine_(seed) {}

  Buffer normal(std::int64_t count, float scale = 1, float mean = 0, DType dtype = DType::f32) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::normal_distribution<float> draw(mean, scale);
    for (float& value : values) value = draw(engine_);
    return Buffer(values, dtype);
  }
  /// Returns int32 values in [low, high].
  Buffer integers(std::int64_t count, std::int32_t low, std::int32_t high) {
    Buffer buffer(static_cast<std::size_t>(count), DType::i32);
    std::uniform_int_distribution<std::int32_t> draw(low, high);
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer.view().i32()[i] = draw(engine_);
    return buffer;
  }
  std::int64_t size(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  template <class T>
  T pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(size(0, std::ssize(values) - 1))];
  }

 private:
  std::mt19937 engine_;
};

/// Returns max |a - b| / max(|b|, scale), or infinity if either has a NaN or the sizes differ.
template <class A, class B>
double relative_error(const A& a, const B& b, double scale = 0) {
  if (std::size(a) != std::size(b)) return std::numeric_limits<double>::infinity();
  double most = std::max(scale, 1e-30), difference = 0;
  for (std::size_t i = 0; i < std::size(a); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, d);
    most = std::max(most, std::abs(static_cast<double>(b[i])));
  }
  return difference / most;
}

}  // namespace concertina
