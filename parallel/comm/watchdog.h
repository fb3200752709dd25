// Names the rank that hangs: a thread that reports when nothing has progressed for too long.
// Invariants: at(), beat() and step_done() are lock-free and never allocate; a process that was
// stopped (SIGSTOP, a suspended machine) does not count the pause as a hang; of ranks of one host
// that wait for each other one speaks; what is slow is told and never ended for it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/process_state.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/operation_log.h"
#include "parallel/comm/stall.h"

namespace concertina {

/// Limits of a silence, by the seconds of a step: of the first report, which comes within the
/// larger of 2 s and 3 steps, and of the end. No operation of a step takes 20 of its steps; what
/// else may keep a rank (page clearing, another process) shows as slow, or is over in less than 30
/// s.
double report_seconds(double step);
double end_seconds(double step);

struct WatchdogOptions {
  std::chrono::duration<double> limit{0};   // without a pace: a report, and a quarter later the end
  bool ends_by_pace = false;                // once steps are known, the end comes by end_seconds()
  OperationLog* log = nullptr;              // of this rank; null: one of its own
  std::vector<const OperationLog*> host{};  // by rank of the world; null: of another host
  std::function<void(Stall)> on_stall{};    // empty: the log. On the watchdog's thread
};

/// Watches the thread that makes and destroys it, and is told of that thread's waits.
class Watchdog final : public WaitObserver {
 public:
  using Seconds = std::chrono::duration<double>;
  /// Gets the report; may end the process. Runs on the watchdog's thread.
  using OnHang = std::function<void(const std::string& report)>;

  /// `limit` 0: off, no thread. A report is logged after `limit` without progress; `on_hang` comes
  /// a quarter of it later, so that the ranks that this one waits for can say whom they wait for.
  /// After that it waits for the next beat before it may report again. Once step_done() has told
  /// the pace, the rank that keeps the others waiting is reported to `on_stall` much earlier.
  Watchdog(int rank, WatchdogOptions options, OnHang on_hang);
  Watchdog(int rank, Seconds limit, OnHang on_hang);
  ~Watchdog() override;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Progress, and what comes next: `what` is kept ("RECV_F"); -1 is not printed.
  void at(const char* what, int stage = -1, int microbatch = -1, int peer = -1) noexcept {
    log_.begin(what, stage, microbatch, peer);
  }
  /// Progress in the same place. One thread calls at() and beat().
  void beat() noexcept { log_.beat(); }
  /// Progress: step `step` of the run is done, and took so long.
  void step_done(std::int64_t step, double seconds) noexcept;
  void waits_for(int rank) noexcept override { log_.wait_for(rank); }
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
  /// What is known of the present silence.
  struct Seen {
    double silent = 0, next_report = 0;  // seconds
    bool told = false, warned = false, ended = false;
    std::optional<ThreadActivity> first{};  // early in the silence
    ThreadActivity last{};
    double sampled_at = 0, moved_at = -1e9;  // of `first`; bytes moved, or storage was waited for
  };

  void watch();
  void look(Seen& seen);
  void look_by_pace(Seen& seen, Silence silence, bool speaks);
  Silence judge(Seen& seen, bool& speaks) const;
  static Silence judge_alone(const ThreadActivity& now, const Seen& seen);
  Silence judge_wait(const Seen& seen, bool& speaks) const;
  Stall stall_of(const Seen& seen, Silence silence, bool ends) const;
  const OperationLog* log_of(int rank) const;
  bool leads_to(int from, int rank) const;
  bool waits_for_slow() const;

  const int rank_;
  const WatchdogOptions options_;
  const OnHang on_hang_;
  const pid_t watched_;
  OperationLog own_;
  OperationLog& log_;
  PaceOfSteps pace_;                      // of the watched thread
  std::atomic<double> step_seconds_ = 0;  // 0: not known yet
  std::atomic<std::int64_t> step_ = -1;   // done
  WaitObserver* before_ = nullptr;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace concertina
