// The current and recent operations of a rank, in memory that the other ranks of its host can read.
// Used to find the rank that hangs, based on its operations and on which ranks wait for which.
// Invariants: one thread writes, lock-free and without allocation. Any process may read at any
// time, and may see a partially overwritten entry of a busy rank. The object contains no pointers,
// so it can be in shared memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

/// An operation that lasted from its start until the next one; -1 means not applicable.
struct Operation {
  std::string what;  // first 39 bytes of the name
  int stage = -1, microbatch = -1, peer = -1;
  double start = 0;    // according to now(), a clock shared by the ranks of a host
  double seconds = 0;  // until the next operation, or until now for the last one
};
/// Returns text such as "RECV_F, stage 1, microbatch 3, rank 0".
std::string to_text(const Operation& operation);

class OperationLog {
 public:
  static constexpr unsigned kKept = 64;
  static constexpr int kUnknown = WaitObserver::kUnknown, kNobody = WaitObserver::kNobody;

  // Called only by the watched thread.
  void begin(const char* what, int stage, int microbatch, int peer) noexcept;
  void beat() noexcept {
    beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Records a long wait for world rank `rank` or kUnknown; kNobody ends the wait.
  void wait_for(int rank) noexcept { waits_for_.store(rank, std::memory_order_relaxed); }
  void patient(int by) noexcept { patience_.fetch_add(by, std::memory_order_release); }

  // Called only by the watching thread, with its classification of the silence.
  void silent(float seconds, bool slow) noexcept {
    silent_.store(seconds, std::memory_order_relaxed);
    slow_.store(slow, std::memory_order_relaxed);
  }

  unsigned beats() const noexcept { return beats_.load(std::memory_order_acquire); }
  int waits_for() const noexcept { return waits_for_.load(std::memory_order_relaxed); }
  bool is_patient() const noexcept { return patience_.load(std::memory_order_acquire) > 0; }
  float silent() const noexcept { return silent_.load(std::memory_order_relaxed); }
  /// Whether the silence is intended, or explained by the operating system.
  bool is_slow() const noexcept { return slow_.load(std::memory_order_relaxed) || is_patient(); }
  /// Returns the last `count` operations, oldest first; the last one is in progress.
  std::vector<Operation> last(unsigned count = kKept) const;

 private:
  static constexpr std::size_t kWords = 5;
  struct Slot {  // one cache line
    std::array<std::atomic<std::uint64_t>, kWords> name;
    std::atomic<std::int32_t> stage, microbatch, peer;
    std::atomic<double> start;
  };

  std::atomic<unsigned> beats_ = 0, begun_ = 0;
  std::atomic<int> waits_for_ = kNobody, patience_ = 0;
  std::atomic<float> silent_ = 0;
  std::atomic<bool> slow_ = false;
  std::array<Slot, kKept> slots_{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<double>::is_always_lock_free && std::atomic<float>::is_always_lock_free);

}  // namespace concertina
