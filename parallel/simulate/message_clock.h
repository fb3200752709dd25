// Times of messages with activations and gradients between ranks.
// A message longer than its link's eager_bytes uses the rendezvous of MPI libraries over streams:
// the first bytes leave at its SEND; once the receiver has them, has posted its RECV and polls its
// transfers, it replies; the rest leaves when the sender sees the reply. A reply queues behind what
// its rank sends in that direction. If eager_bytes is unknown (infinite), a message leaves when
// both ends are posted, or at its SEND if the link has only latency (infinite bandwidth, no
// receive_cpu), as in published simulations.
// Invariant: calls are in order of time.
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
  double start = 0;                         // start of the transfer or of its remainder
  int sender = -1, receiver = -1;           // nodes that posted its ends
  int behind = -1;                          // node of the previous message on its link
  /// Ranks that are blocked until its arrival: the receiver, and the sender if it needs the buffer.
  std::array<int, 2> waiters{-1, -1};
  double copy = 0;     // seconds of the receiver's time, after `end`
  bool eager = false;  // the whole message left without waiting for the receiver

  /// The node that determined when it arrived.
  int cause() const { return behind >= 0 ? behind : eager || sent >= posted ? sender : receiver; }

 private:
  friend class MessageClock;
  enum class Phase { none, head, matched, answered, free };
  Phase phase_ = Phase::none;
  double head_end_ = 0;
};

class MessageClock {
 public:
  /// Returns when a rank polls its transfers next, at or after a time.
  using Look = std::function<double(int rank, double time)>;
  MessageClock(const std::vector<StageInfo>& stages, const Costs& costs, LinkClock& links,
               Look look);

  /// The message that F of this stage and microbatch reads, or (`gradient`) that B or I reads.
  int find(int stage, int microbatch, bool gradient) const;
  Message& operator[](int message) { return messages_[static_cast<std::size_t>(message)]; }
  int from(int message) const;
  int to(int message) const { return stages_[at(stage_of_[at(message / 2)])].rank; }

  /// Must be called after each change of `sent` or `posted`. Returns the time for proceed(), if
  /// any.
  std::optional<double> posted(int message);
  /// Performs the step due at `time`. Returns the time of the next step; nothing if `end` is set.
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
