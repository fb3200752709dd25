// Threads that help one caller. They enter through a gate: one word with the number of the round,
// whether it is open, and how many threads are inside. The caller opens it, works like the others
// until no pieces are left, closes it, and waits only for the threads inside. Invariant: the data
// of a round is written while the gate is closed and no thread is inside.
//
// Waiting threads spin for a few microseconds and then sleep. With fewer free cores than threads, a
// spinning thread would keep a core from the thread that it is waiting for.
#include "core/cpu/team.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace concertina::cpu {
namespace {

using Gate = std::uint32_t;
constexpr Gate kOpen = 1, kOne = 2, kInside = 0xFFFE, kRound = 0x10000;
constexpr int kSpins = 2000;

}  // namespace

class TeamThreads {
  /// Pieces [next, end). Each thread begins with its own share, whose rows may be in its cache.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

 public:
  explicit TeamThreads(int threads) : shares_(static_cast<std::size_t>(threads)) {
    for (int t = 1; t < threads; ++t) others_.emplace_back([this, t] { serve(t); });
  }

  ~TeamThreads() {
    stop_ = true;
    gate_ += kRound;
    gate_.notify_all();
    for (std::thread& other : others_) other.join();
  }

  void run(std::int64_t pieces, Team::Work work) {
    work_ = work;
    const auto count = static_cast<std::int64_t>(shares_.size());
    for (std::int64_t t = 0; t < count; ++t) {
      Share& share = shares_[static_cast<std::size_t>(t)];
      share.next.store(pieces * t / count, std::memory_order_relaxed);
      share.end = pieces * (t + 1) / count;
    }
    gate_.store((gate_.load() & ~(kRound - 1)) + kRound + kOpen);
    gate_.notify_all();
    take_pieces(0);
    Gate gate = gate_.fetch_and(~kOpen) & ~kOpen;
    while ((gate & kInside) != 0) gate = changed(gate);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void serve(int thread) {
    omp_set_num_threads(1);
    Gate gate = 0, seen = 0;
    while (!stop_) {
      if ((gate & kOpen) == 0 || gate / kRound == seen) {
        gate = changed(gate);
      } else if (gate_.compare_exchange_strong(gate, gate + kOne)) {
        seen = gate / kRound;
        take_pieces(thread);
        gate = gate_.fetch_sub(kOne) - kOne;
        if ((gate & (kOpen | kInside)) == 0) gate_.notify_all();  // the caller may be asleep
      }
    }
  }

  void take_pieces(int thread) {
    const std::size_t count = shares_.size();
    try {
      for (std::size_t i = 0; i < count; ++i) {
        Share& share = shares_[(static_cast<std::size_t>(thread) + i) % count];
        while (true) {
          const std::int64_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
          if (piece >= share.end) break;
          work_.call(work_.function, piece, thread);
        }
      }
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  /// Waits until the gate is not `old`, and returns it.
  Gate changed(Gate old) const {
    for (int i = 0; i < kSpins; ++i) {
      if (const Gate now = gate_.load(); now != old) return now;
      __builtin_ia32_pause();
    }
    gate_.wait(old);
    return gate_.load();
  }

  std::atomic<Gate> gate_{0};
  std::atomic<bool> stop_{false};
  Team::Work work_;
  std::vector<Share> shares_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
  std::vector<std::thread> others_;  // declared last: they use the other members
};

Team::Team(int threads) : threads_(threads) {}
Team::~Team() = default;

void Team::run(std::int64_t pieces, Work work) const {
  if (others_ == nullptr) others_ = std::make_unique<TeamThreads>(threads_);
  others_->run(pieces, work);
}

}  // namespace concertina::cpu
