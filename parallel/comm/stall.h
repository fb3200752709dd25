// A rank that makes no progress: which, in what, why as far as its host knows, and what the ranks
// did before that.
// Invariant: values only; whoever reports it needs nothing of the rank itself.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "parallel/comm/operation_log.h"

namespace concertina {

/// What a silence is.
enum class Silence {
  meant,     // a Patience lives (watchdog.h)
  storage,   // bytes come or go, or the system waits for storage: slow, and never ended for it
  starved,   // the rank could run, and is given no core: neither
  follows,   // the rank waits for one of this host that is itself silent, or that goes on
  outside,   // the rank waits for one of another host, or for it knows not whom
  circle,    // ranks of this host wait for each other: a message is lost
  computes,  // the rank uses its core, in one place
  stands,    // the rank waits for what is no rank: a lock, a thread, a device
};
/// "stands", as in events.jsonl.
const char* name_of(Silence silence);
/// The silence ends by itself, as far as anybody can know.
bool is_slow(Silence silence);
/// The rank has no reason to be silent but a fault of its own, or of a message to it.
bool hangs(Silence silence);

struct Stall {
  int rank = 0;
  double seconds = 0;  // without progress
  Silence silence = Silence::meant;
  bool ends = false;       // the launch ends for it
  std::int64_t step = -1;  // the last one that was done, if any
  Operation now{};
  int waits_for = OperationLog::kNobody;
  std::string peer_host{};     // of that rank; empty: not known
  std::vector<int> waiting{};  // ranks of the host that wait for it, maybe for each other first
  std::vector<std::pair<int, std::vector<Operation>>> last{};  // by rank, oldest first; this first
  std::vector<std::string> stack{};                            // innermost first
};
/// "rank 1 on node2 makes no progress for 2.1 s in F, stage 1, microbatch 3: it computes in one
/// place; ranks 0,2 wait for it". One line.
std::string headline(const Stall& stall);
/// The same with what the ranks last did and the stack, a line each.
std::string report_of(const Stall& stall);

/// The lengths of the last steps, of which the limits follow.
class PaceOfSteps {
 public:
  void add(double seconds) noexcept { seconds_[count_++ % kKept] = seconds; }
  /// The larger of the median and the last one; 0 until enough are known.
  double seconds() const noexcept;

 private:
  static constexpr unsigned kKept = 32, kEnough = 5;
  std::array<double, kKept> seconds_{};
  unsigned count_ = 0;
};

}  // namespace concertina
