// Judges of the launches of a run: whether one can never end by itself, by what its supervisor sees
// of its processes on this host, and whether another one makes sense after it.
// Invariants: pure; each judge sees all facts of a launch, or all launches, in their order. Bad
// input and divergence are never tried again, nor what failed twice with the same words from the
// same state; a damaged checkpoint that was put aside is an exception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "experiments/launcher/child_process.h"
#include "experiments/machine/fault_log.h"
#include "experiments/machine/lasting.h"

namespace concertina {

/// How a launch ended.
struct LaunchEnd {
  FaultKind kind = FaultKind::ended;
  std::string why{};    // as of Restart
  double fault_at = 0;  // when it was seen, by now()
  int code = 1;         // of the launcher
};
using Verdict = std::optional<LaunchEnd>;

/// Finds that a rank has ended and nobody ends the others: they wait in the start of an MPI that
/// tolerates deaths.
class Absence {
 public:
  /// Ranks do not outlive one that died by so much: MPI, or the watch of a launch, ends them.
  static constexpr double kAloneSeconds = 1.5;
  /// From the first of them until all are there.
  static constexpr double kArriveSeconds = 10;

  Verdict look(const ProcessFacts& facts);
  /// Ranks have said at `at` that one has died: they decide whether they continue without it.
  void excuse(double at) { there_at_ = at; }
  /// They continue: as many as are there now are all.
  void lose() { count_ = 0, fewer_ = true; }

 private:
  std::size_t count_ = 0;  // that should be there
  bool fewer_ = false;     // than MPI started
  double there_at_ = 0;    // when all were last, at first when one was; 0: never
  double patience_ = kArriveSeconds;
};

/// Finds that a signal has stopped ranks of this host where the others cannot say so: they are
/// stopped as well or, which takes longer to tell, wait in the start of MPI.
class StoppedRanks {
 public:
  static constexpr Limit kOneLimit{2.5, kStopLimit.looks};

  Verdict look(const ProcessFacts& facts);

 private:
  Lasting stopped_;
};

/// Finds that the launcher does not start ranks, or does not return once they have ended.
class Launching {
 public:
  /// Until a launch that has no rank on this host has loaded what it starts from.
  static constexpr double kStartSeconds = 1200;
  static constexpr double kReturnSeconds = 0.6;
  /// From the start, until its hosts are asked the first time; then twice as long each time.
  static constexpr double kQuestionSeconds = 3;

  explicit Launching(double at) : launched_(at), stopped_{.free_at = at} {}

  Verdict look(const ProcessFacts& facts);
  /// Whether a signal has stopped the launcher, without which MPI neither starts nor ends.
  bool is_stopped(const ProcessFacts& facts);
  /// Whether the hosts of the launch are to be asked: until it has begun, its ranks on other hosts
  /// have nobody else who sees that they are stopped, or that their host is gone.
  bool asks_hosts(const ProcessFacts& facts);

 private:
  double launched_, last_ = 0;  // when; and when a rank was there last, 0: never
  Lasting stopped_;
  double question_after_ = kQuestionSeconds;
};

/// A launch that has ended, and what it has left.
struct EndedLaunch {
  LaunchEnd end{};
  std::string hosts{};      // that it had
  std::int64_t newest = 0;  // step of the newest state of the run
  bool older = false;       // its newest checkpoint was damaged, and an older one is used
  bool any_begun = true;    // this launch or one before it has begun
};

/// Whether a launch has refused what it was given.
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

  /// Why there is to be no launch after this one; nothing: there is.
  std::optional<Stop> after(const EndedLaunch& launch);
  /// Seconds before the next launch: none after one that has made progress, else twice as many from
  /// one launch to the next.
  double pause() const;

 private:
  const std::optional<int> max_restarts_;
  const std::int64_t every_;
  std::int64_t newest_;
  int restarts_ = 0, in_vain_ = 0;  // the second: launches in a row that committed nothing
  std::string last_words_{};  // and hosts of the launch before, if the next one may fail alike
};

}  // namespace concertina
