// A Staging whose copies take several calls of idle(), a later copy often fewer than an earlier
// one, to test code that waits for copies.
// Invariant: a fetch reads its block, and a deliver writes it, exactly when the copy ends.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "core/memory.h"

namespace concertina::test {

class LateStaging final : public Staging {
 public:
  using Copy = std::function<void(const void* from, void* to, std::size_t bytes)>;

  /// `copy` may access blocks. `seed` determines the delays.
  LateStaging(std::size_t bytes, unsigned seed, Copy copy)
      : buffer_(bytes), random_(seed), copy_(std::move(copy)) {}

  std::span<std::byte> host() override { return buffer_; }
  void mark() override { marked_ = true; }
  void fetch(const void* block) override {
    std::fill(buffer_.begin(), buffer_.end(), std::byte{0xA5});  // sent if the caller does not wait
    begin(block, buffer_.data());
  }
  void deliver(void* block) override { begin(buffer_.data(), block); }
  bool idle() override {
    if (left_ > 0 && --left_ == 0) copy_(from_, to_, buffer_.size());
    return left_ == 0;
  }

 private:
  void begin(const void* from, void* to) {
    if (!marked_ || left_ > 0) std::abort();  // a copy without mark(), or during another copy
    marked_ = false;
    from_ = from;
    to_ = to;
    random_ = random_ * 1664525U + 1013904223U;
    left_ = 1 + static_cast<int>(random_ >> 29U);
  }

  std::vector<std::byte> buffer_;
  unsigned random_;
  Copy copy_;
  const void* from_ = nullptr;
  void* to_ = nullptr;
  int left_ = 0;  // calls of idle() until the copy ends
  bool marked_ = false;
};

}  // namespace concertina::test
