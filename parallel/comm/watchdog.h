// Names the rank that hangs: a thread that reports when nothing has progressed for too long.
// Invariants: at() and beat() are lock-free and never allocate; a process that was stopped
// (SIGSTOP, a suspended machine) does not count the pause as a hang.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "parallel/comm/communicator.h"

namespace concertina {

/// Watches the thread that makes and destroys it, and is told of that thread's waits.
class Watchdog final : public WaitObserver {
 public:
  using Seconds = std::chrono::duration<double>;
  /// Gets the report; may end the process. Runs on the watchdog's thread.
  using OnHang = std::function<void(const std::string& report)>;

  /// `limit` 0: off, no thread. A report is logged after `limit` without progress; `on_hang` comes
  /// a quarter of it later, so that the ranks that this one waits for can say whom they wait for.
  /// After that it waits for the next beat before it may report again.
  Watchdog(int rank, Seconds limit, OnHang on_hang);
  ~Watchdog() override;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Progress, and what comes next: `what` lives for ever ("RECV_F"); -1 is not printed.
  void at(const char* what, int stage = -1, int microbatch = -1, int peer = -1) noexcept;
  /// Progress in the same place. One thread calls at() and beat().
  void beat() noexcept {
    beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void waits_for(int rank) noexcept override { peer_.store(rank, std::memory_order_relaxed); }
  /// "rank 1: no progress for 5 s: RECV_F, stage 1, microbatch 3, waits for rank 0"
  std::string report(Seconds silent) const;

  /// As long as one lives, silence is a warning and never a hang: for what takes as long as storage
  /// takes, or as the slowest rank takes with it. A stop there is left to people.
  class Patience {
   public:
    /// `watchdog` may be null; `what` as of at().
    Patience(Watchdog* watchdog, const char* what) noexcept;
    ~Patience();
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

   private:
    Watchdog* watchdog_;
  };

 private:
  void watch();

  int rank_;
  Seconds limit_;
  OnHang on_hang_;
  std::atomic<unsigned> beats_ = 0;
  std::atomic<const char*> what_ = "starting";
  std::atomic<int> stage_ = -1, microbatch_ = -1, peer_ = -1;
  std::atomic<int> patience_ = 0;  // Patience objects that live
  WaitObserver* before_ = nullptr;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace concertina
