// When activations and gradients pass from rank to rank.
// A message longer than its link's eager_bytes passes by the rendezvous of MPI libraries over
// streams: its first bytes leave at its SEND; once the receiver has these, has posted its RECV and
// looks at its transfers, it answers; the rest leaves when the sender sees the answer. An answer
// stands in line after what its own rank sends the other way. Where eager_bytes are not known
// (infinite), a message leaves when both its ends are posted; but at its SEND where the link has a
// latency alone (infinite bandwidth, no receive_cpu), as published simulations have it.
// Invariant: calls come in order of time.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "core/index.h"
#include "parallel/plan/plan_graph.h"
#include "parallel/simulate/link_clock.h"

namespace concertina {

struct Message {
  double sent = -1, posted = -1, end = -1;  // -1: not yet
  double start = 0;                         // of its way, or of the rest's
  int sender = -1, receiver = -1;           // nodes that posted its ends
  int behind = -1;                          // node that the message before it on its link is from
  /// Ranks that stand still until it has come: its receiver, and its sender for the buffer.
  std::array<int, 2> waiters{-1, -1};
  double copy = 0;     // seconds of the receiver's time, after `end`
  bool eager = false;  // all of it left without waiting for its receiver

  /// The node that it would have come earlier without.
  int cause() const { return behind >= 0 ? behind : eager || sent >= posted ? sender : receiver; }

 private:
  friend class MessageClock;
  enum class Phase { none, head, matched, answered, free };
  Phase phase = Phase::none;
  double head_end = 0;
};

class MessageClock {
 public:
  /// When a rank looks at its transfers next, from a time on.
  using Look = std::function<double(int rank, double time)>;
  MessageClock(const std::vector<StageInfo>& stages, const Costs& costs, LinkClock& links,
               Look look);

  /// The message that F of this stage and microbatch reads, or (`gradient`) that B or I does.
  int find(int stage, int microbatch, bool gradient) const;
  Message& operator[](int message) { return messages_[static_cast<std::size_t>(message)]; }
  int from(int message) const;
  int to(int message) const { return stages_[at(stage_of_[at(message / 2)])].rank; }

  /// Is called after each change of `sent` or `posted`; returns the time for proceed(), if there
  /// is one.
  std::optional<double> posted(int message);
  /// The message's next step, due at `time`; the time for the one after it, or none: `end` is set.
  std::optional<double> proceed(int message, double time);

 private:
  void carry(int message, double bytes, double ready);

  const std::vector<StageInfo>& stages_;
  const Costs& costs_;
  LinkClock& links_;
  Look look_;
  std::vector<int> cell_begin_;  // by stage: cells of its microbatches
  std::vector<int> stage_of_;    // by cell
  std::vector<Message> messages_;
};

}  // namespace concertina
