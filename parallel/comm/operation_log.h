// What a rank does and last did, in memory that the other ranks of its host may read: who hangs is
// told by what it did, and by who waits for whom.
// Invariants: one thread writes operations, lock-free and without allocation; any process may read
// at any time, and of a rank that is busy may read a line that is just being written anew; the
// object holds no pointers, so that it may lie in shared memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace concertina {

/// What happened at a time, until the next began. -1: nothing of the kind.
struct Operation {
  std::string what;  // the first 39 bytes of its name
  int stage = -1, microbatch = -1, peer = -1;
  double start = 0;    // by now(), which ranks of a host share
  double seconds = 0;  // until the next one; of the last one, so far
};
/// "RECV_F, stage 1, microbatch 3, rank 0".
std::string to_text(const Operation& operation);

class OperationLog {
 public:
  static constexpr unsigned kKept = 64;
  static constexpr int kUnknown = -1, kNobody = -2;  // of waits_for(): as of WaitObserver

  // Only the watched thread calls these.
  void begin(const char* what, int stage, int microbatch, int peer) noexcept;
  void beat() noexcept {
    beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// In a wait that has become a long one: for the rank `rank` of the world, or kUnknown; kNobody:
  /// it is over.
  void wait_for(int rank) noexcept { waits_for_.store(rank, std::memory_order_relaxed); }
  void patient(int by) noexcept { patience_.fetch_add(by, std::memory_order_release); }

  // Only the thread that watches calls this: what it makes of the silence.
  void silent(float seconds, bool slow) noexcept {
    silent_.store(seconds, std::memory_order_relaxed);
    slow_.store(slow, std::memory_order_relaxed);
  }

  unsigned beats() const noexcept { return beats_.load(std::memory_order_acquire); }
  int waits_for() const noexcept { return waits_for_.load(std::memory_order_relaxed); }
  bool is_patient() const noexcept { return patience_.load(std::memory_order_acquire) > 0; }
  float silent() const noexcept { return silent_.load(std::memory_order_relaxed); }
  /// Its silence is explained by what the system does for it, or is meant.
  bool is_slow() const noexcept { return slow_.load(std::memory_order_relaxed) || is_patient(); }
  /// The last `count` operations, oldest first; the last one is under way.
  std::vector<Operation> last(unsigned count = kKept) const;

 private:
  static constexpr std::size_t kWords = 5;
  struct Slot {  // a cache line
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
