// The state of one simulation; simulate.cc runs it, simulate_messages.cc moves its messages.
// Invariant: events are handled in order of time, and a rank's clock is never behind the event that
// is being handled, so that links see messages in the order in which they are ready.
#pragma once

#include <queue>
#include <utility>
#include <vector>

#include "core/index.h"
#include "parallel/simulate/bucket_clock.h"
#include "parallel/simulate/compute_clock.h"
#include "parallel/simulate/link_clock.h"
#include "parallel/simulate/message_clock.h"
#include "parallel/simulate/timeline.h"

namespace concertina {

class Simulation {
 public:
  Simulation(const Plan& plan, const Layout& layout, const Costs& costs);
  Timeline run() &&;

 private:
  struct Event {
    double time;
    int who;  // a rank, or ranks + message
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : who > other.who;
    }
  };
  /// Compute under way on a rank: `seconds` of its own from `start` on.
  struct UnderWay {
    double start = 0, seconds = -1;  // < 0: none
  };
  /// Buffers for messages that nothing answers (kSendBuffers).
  struct Outbox {
    std::vector<int> sends;  // messages, in the order of the row
    int taken = 0;
  };
  struct Outboxes {
    Outbox gradients, activations;
  };
  struct Rank {
    std::size_t position = 0;  // in its row
    std::size_t tail = 0;      // after the row's last compute
    std::vector<int> stages;   // that it holds
    double clock = 0;
    UnderWay under_way;
    std::vector<int> unsent;  // see keep_outputs()
    Outboxes outboxes;
  };

  int rank_count() const { return static_cast<int>(plan_.rows.size()); }
  /// The node of the rank's next action.
  int node(int rank) const;

  // Events.
  /// A message's next step is due.
  void push(double time, int message) { events_.push({time, rank_count() + message}); }
  /// The earliest time at which something is due; infinite: nothing is.
  double next_time() const;
  /// Actions of a rank, as long as nothing else is due before its next one.
  void run_rank(int rank);
  /// The rank's next action, or pair of actions that overlap, or one of them further on its way;
  /// false if it has to wait for an event, or has none.
  bool perform(int rank);
  /// The next `count` actions: starts them, moves the rank's clock to the end that is known, or
  /// finishes them if nothing came between.
  bool compute(int rank, int count);
  /// Exchanges of gradients that are done within the action, which ends now as far as is known.
  void start_reductions(int rank, const Action& action);
  /// Transfers, REDUCE and STEP. A REDUCE among compute waits for nothing: STEP does, or a REDUCE
  /// in the row's tail.
  bool other(int rank, const Action& action);
  bool reduced(int rank, int stage);
  /// The last rank that comes to STEP runs it for all.
  bool step(int rank);
  double norm(int rank) const { return costs_.ranks.empty() ? 0 : costs_.ranks[at(rank)].norm; }

  // Messages.
  /// In a plan without SENDs: what an action made, for post_outputs() at its end, not before, so
  /// that links see messages in order of time.
  void keep_outputs(int rank, const Action& action);
  bool post_outputs(int rank);
  /// The message that the action reads from another rank, or -1.
  int input_of(const Action& action) const;
  /// Whether the rank, waiting if need be, has what the action needs.
  bool await(int rank, const Action& action);
  /// Shared memory: the receiver's part of the copy.
  void copy_input(int rank, const Action& action);
  /// Waits for a message; false if it is not even on its way.
  bool arrived(int rank, int message, Wait wait);
  /// From which the action takes a buffer, or null.
  Outbox* outbox_of(int rank, const Action& action);
  bool has_buffer(int rank, const Outbox& outbox);
  /// When `rank` looks at its transfers next, if nothing of it is due before `time`: between units,
  /// or at once where it waits.
  double look(int rank, double time) const;
  bool post(int rank, const Action& action);
  void posted(int message);
  void proceed(int message, double time);
  /// Wakes who waits for it.
  void passed(int message);

  const Plan& plan_;
  const Costs& costs_;
  const std::vector<StageInfo> stages_;
  ComputeClock compute_;
  LinkClock links_;
  MessageClock messages_;
  BucketClock buckets_;
  bool transfers_ = false;
  int steps_left_ = 0;
  std::vector<int> row_begin_;  // by rank: nodes of its row
  std::vector<Delay> delays_;   // by node
  std::vector<Rank> ranks_;
  std::vector<int> in_step_;
  std::vector<std::pair<int, Interval>> steps_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Timeline timeline_;
};

}  // namespace concertina
