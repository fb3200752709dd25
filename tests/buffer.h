// Memory for tests: aligned as backends expect, poisoned, and guarded against writes past its end.
// Invariant: a Buffer that something wrote past ends the test when it dies.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace concertina {

inline constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

class Buffer {
 public:
  /// `count` elements of 4 bytes, all NaN.
  explicit Buffer(std::size_t count = 0, DType dtype = DType::f32)
      : count_(count),
        dtype_(dtype),
        memory_(static_cast<float*>(
            std::aligned_alloc(kAlignment, align_up((count + kGuard) * sizeof(float))))) {
    std::fill_n(memory_.get(), count, kPoison);
    std::fill_n(memory_.get() + count, kGuard, kGuardValue);
  }
  explicit Buffer(const std::vector<float>& values) : Buffer(values.size()) {
    std::copy(values.begin(), values.end(), memory_.get());
  }
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  ~Buffer() {
    for (std::size_t i = 0; memory_ != nullptr && i < kGuard; ++i)
      EXPECT_EQ(memory_.get()[count_ + i], kGuardValue) << i << " elements past " << count_;
  }

  View view() const { return {memory_.get(), count_, dtype_}; }
  float* data() const { return memory_.get(); }
  std::size_t size() const { return count_; }
  std::vector<float> values() const { return {memory_.get(), memory_.get() + count_}; }

 private:
  static constexpr std::size_t kGuard = 32;
  static constexpr float kGuardValue = 12345.0F;
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::size_t count_;
  DType dtype_;
  std::unique_ptr<float, Free> memory_;
};

/// A poisoned Buffer of at least `bytes`.
inline Buffer buffer_of_bytes(std::size_t bytes) {
  return Buffer((bytes + 3) / 4);
}

/// Reproducible contents.
class Data {
 public:
  explicit Data(unsigned seed) : engine_(seed) {}

  Buffer normal(std::int64_t count, float scale = 1, float mean = 0) {
    Buffer buffer(static_cast<std::size_t>(count));
    std::normal_distribution<float> draw(mean, scale);
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer.data()[i] = draw(engine_);
    return buffer;
  }
  /// int32 in [low, high].
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

/// max |a - b| / max(|b|, scale); infinity if either has a NaN or the sizes differ.
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
