// A thread that reports which rank hangs when there has been no progress for too long.
// Invariants: at(), beat() and step_done() are lock-free and never allocate; the time during which
// a process is stopped (SIGSTOP, a suspended machine) does not count; of ranks of one host that
// wait for each other, only one reports; slow operations are reported but never aborted.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/process_state.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/operation_log.h"
#include "parallel/comm/stall.h"

namespace concertina {

/// Limits on a silence, derived from the duration of a step: for the first report (at most the
/// larger of 2 s and 3 steps) and for aborting. No operation takes as long as 20 steps; other
/// delays (page clearing, another process) are classified as slow or end within 30 s.
double report_seconds(double step);
double end_seconds(double step);

struct WatchdogOptions {
  std::chrono::duration<double> limit{0};  // if no steps are known: report after this time, abort
                                           // after 1.25 times this
  bool ends_by_pace = false;               // once steps are known, abort after end_seconds()
  OperationLog* log = nullptr;             // log of this rank; null: a private one
  std::vector<const OperationLog*> host{};  // by world rank; null: on another host
  std::function<void(Stall)> on_stall{};    // default: log it; called on the watchdog's thread
};

/// Watches the thread that constructs and destroys it, and observes that thread's waits.
class Watchdog final : public WaitObserver {
 public:
  using Seconds = std::chrono::duration<double>;
  /// Receives the report; may exit the process. Runs on the watchdog's thread.
  using OnHang = std::function<void(const std::string& report)>;

  /// A `limit` of 0 disables the watchdog. A report is logged after `limit` without progress.
  /// `on_hang` is called a quarter of `limit` later, so that ranks this one waits for can first
  /// report whom they wait for. The next report requires a beat in between. Once step_done() has
  /// set the pace, the rank that delays the others is reported to `on_stall` much earlier.
  Watchdog(int rank, WatchdogOptions options, OnHang on_hang);
  Watchdog(int rank, Seconds limit, OnHang on_hang);
  ~Watchdog() override { observe_waits(before_); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Records progress and the next operation. `what` is stored ("RECV_F"); -1 is not printed.
  void at(const char* what, int stage = -1, int microbatch = -1, int peer = -1) noexcept {
    log_.begin(what, stage, microbatch, peer);
  }
  /// Records progress within the same operation. Only one thread calls at() and beat().
  void beat() noexcept { log_.beat(); }
  /// Records that step `step` of the run is done and took `seconds`.
  void step_done(std::int64_t step, double seconds) noexcept;
  void waits_for(int rank) noexcept override { log_.wait_for(rank); }
  /// Returns "rank 1: no progress for 5 s: RECV_F, stage 1, microbatch 3, waits for rank 0".
  std::string report(Seconds silent) const;

  /// While one exists, silence is reported as a warning and never as a hang: for operations that
  /// storage or the slowest rank may slow down. Aborting them is left to the user.
  class Patience {
   public:
    /// `watchdog` may be null; `what` as in at().
    Patience(Watchdog* watchdog, const char* what) noexcept;
    ~Patience();
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

   private:
    Watchdog* watchdog_;
  };

 private:
  /// State of the current silence.
  struct Seen {
    double silent = 0, next_report = 0;  // seconds
    bool reported = false, warned = false, ended = false;
    std::optional<ThreadActivity> first{};  // early in the silence
    ThreadActivity last{};
    double sampled_at = 0, moved_at = -1e9;  // time of `first`; last time that bytes moved or
                                             // storage was waited for
  };

  void watch(const std::stop_token& stop);
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
  PaceOfSteps pace_;                      // pace of the watched thread
  std::atomic<double> step_seconds_ = 0;  // 0: not known yet
  std::atomic<std::int64_t> step_ = -1;   // last completed step
  WaitObserver* before_ = nullptr;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // declared last: it ends before what it uses
};

}  // namespace concertina
