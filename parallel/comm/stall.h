// A stall of a rank: which rank, in which operation, the reason if known on its host, and the
// recent operations of the ranks involved.
// Invariant: plain values; reporting needs nothing from the rank itself.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "parallel/comm/operation_log.h"

namespace concertina {

/// Reason for a silence.
enum class Silence {
  meant,     // a Patience is alive (watchdog.h)
  storage,   // bytes move, or the system waits for storage: slow, never aborted
  starved,   // runnable but without a core: slow, never aborted
  follows,   // waits for a rank of this host that is itself silent or that continues
  outside,   // waits for a rank of another host, or for an unknown one
  cycle,     // ranks of this host wait for each other: a message was lost
  computes,  // uses its core without making progress
  blocked,   // waits for something other than a rank: a lock, a thread, a device
};
/// Returns the name used in events.jsonl, such as "blocked".
const char* name_of(Silence silence);
/// Whether the silence is expected to end without intervention.
bool is_slow(Silence silence);
/// Whether the only explanation is a fault in the rank or in a message to it.
bool hangs(Silence silence);

struct Stall {
  int rank = 0;
  double seconds = 0;  // without progress
  Silence silence = Silence::meant;
  bool ends = false;       // the launch is aborted because of it
  std::int64_t step = -1;  // last completed step, if any
  Operation now{};
  int waits_for = OperationLog::kNobody;
  std::string peer_host{};     // host of rank waits_for; empty if unknown
  std::vector<int> waiting{};  // ranks of the host that wait for it, directly or indirectly
  std::vector<std::pair<int, std::vector<Operation>>> last{};  // by rank (this rank first), oldest
                                                               // first
  std::vector<std::string> stack{};                            // innermost first
};
/// Returns one line such as "rank 1 on node2 has made no progress for 2.1 s in F, stage 1,
/// microbatch 3: it uses its core without making progress; ranks 0, 2 wait for it".
std::string headline(const Stall& stall);
/// Returns the headline, then recent operations and stack, one per line.
std::string report_of(const Stall& stall);

/// Durations of the last steps, from which the limits are derived.
class PaceOfSteps {
 public:
  void add(double seconds) noexcept { seconds_[count_++ % kKept] = seconds; }
  /// Returns the larger of the median and the last duration, or 0 until enough steps are known.
  double seconds() const noexcept;

 private:
  static constexpr unsigned kKept = 32, kEnough = 5;
  std::array<double, kKept> seconds_{};
  unsigned count_ = 0;
};

}  // namespace concertina
