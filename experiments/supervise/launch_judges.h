// Judges of a run's launches: from what the supervisor observes of a launch's processes on this
// host, they decide whether the launch can never finish, and whether to restart after it.
// Invariants: pure; each judge sees all facts of a launch, or all launches, in order. Bad input and
// divergence are never retried, nor is a launch that failed twice with the same message from the
// same state, unless a damaged checkpoint was put aside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "experiments/launcher/child_process.h"
#include "experiments/machine/fault_log.h"
#include "experiments/machine/persistent_state.h"

namespace concertina {

/// The end of a launch.
struct LaunchEnd {
  FaultKind kind = FaultKind::ended;
  std::string why{};    // see Restart
  double fault_at = 0;  // when it was detected, on the clock of now()
  int code = 1;         // of the launcher
};
using Verdict = std::optional<LaunchEnd>;

/// Detects that a rank exited while the others were not stopped: they are waiting for the start of
/// an MPI that tolerates deaths.
class Absence {
 public:
  /// Maximum time that ranks outlive a dead one: MPI or the launch's watch stops them.
  static constexpr double kAloneSeconds = 1.5;
  /// Maximum time from the first rank until all are present.
  static constexpr double kArriveSeconds = 10;

  Verdict look(const ProcessFacts& facts);
  /// Ranks reported at `at` that one has died: they decide whether to continue without it.
  void excuse(double at) { there_at_ = at; }
  /// The ranks continue; the present ones are now the complete set.
  void lose() { count_ = 0, fewer_ = true; }

 private:
  std::size_t count_ = 0;  // expected ranks
  bool fewer_ = false;     // fewer than MPI started
  double there_at_ = 0;    // when all, or initially one, were last present; 0: never
  double patience_ = kArriveSeconds;
};

/// Detects ranks of this host that were stopped by a signal if other ranks cannot report it, being
/// stopped as well or (which takes longer to detect) waiting for MPI to start.
class StoppedRanks {
 public:
  static constexpr Limit kOneLimit{2.5, kStopLimit.looks};

  Verdict look(const ProcessFacts& facts);

 private:
  PersistentState stopped_;
};

/// Detects that the launcher does not start ranks, or does not return after they exit.
class Launching {
 public:
  /// Maximum time until a launch without ranks on this host has loaded its state.
  static constexpr double kStartSeconds = 1200;
  static constexpr double kReturnSeconds = 0.6;
  /// Time from a launch's start until its hosts are first queried; doubles after each query.
  static constexpr double kQuestionSeconds = 3;

  explicit Launching(double at) : launched_(at), stopped_{.free_at = at} {}

  Verdict look(const ProcessFacts& facts);
  /// Whether the launcher, which MPI needs to start and to finish, has been stopped by a signal.
  bool is_stopped(const ProcessFacts& facts);
  /// Whether to query the hosts of the launch: until the launch has begun, nothing else detects
  /// that its ranks on other hosts are stopped, or that such a host is lost.
  bool asks_hosts(const ProcessFacts& facts);

 private:
  double launched_, last_ = 0;  // start; last time with a rank, 0: never
  PersistentState stopped_;
  double question_after_ = kQuestionSeconds;
};

/// A launch that ended, and the state that it left.
struct EndedLaunch {
  LaunchEnd end{};
  std::string hosts{};      // of the launch
  std::int64_t newest = 0;  // step of the run's newest state
  bool older = false;       // its newest checkpoint was damaged; an older one is used
  bool any_begun = true;    // this launch or an earlier one began training
};

/// Whether a launch refused its input.
bool is_refused(const LaunchEnd& end);

class RestartPolicy {
 public:
  static constexpr int kMostInVain = 5;
  static constexpr double kLongestPause = 30;

  struct Stop {
    Exit code;
    std::string why;
  };

  /// `every`: checkpoint.every; `newest`: step of the newest state before the first launch.
  RestartPolicy(std::optional<int> max_restarts, std::int64_t every, std::int64_t newest)
      : max_restarts_(max_restarts), every_(every), newest_(newest) {}

  /// The reason for not starting another launch; nullopt to start one.
  std::optional<Stop> after(const EndedLaunch& launch);
  /// The pause before the next launch in seconds: 0 after progress, otherwise doubling.
  double pause() const;

 private:
  const std::optional<int> max_restarts_;
  const std::int64_t every_;
  std::int64_t newest_;
  int restarts_ = 0, in_vain_ = 0;  // in_vain_: consecutive launches without a commit
  std::string last_words_{};        // `why` and hosts, if the next launch may fail the same way
};

}  // namespace concertina
