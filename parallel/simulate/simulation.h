// The state of one simulation; simulate.cc runs it, simulate_messages.cc handles its messages.
// Invariant: events are handled in order of time, and a rank's clock is never behind the current
// event, so that links receive messages in the order in which they are ready.
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
  /// Running compute of a rank: `seconds` of work from `start`.
  struct UnderWay {
    double start = 0, seconds = -1;  // < 0: none
  };
  /// Buffers for messages without an answer (kSendBuffers).
  struct Outbox {
    std::vector<int> sends;  // messages, in row order
    int taken = 0;
  };
  struct Rank {
    std::size_t position = 0;  // index in its row
    std::size_t tail = 0;      // after the row's last compute
    std::vector<int> stages;   // stages on this rank
    double clock = 0;
    UnderWay under_way;
    std::vector<int> unsent;  // see keep_outputs()
    Outbox gradients, activations;
  };

  int rank_count() const { return static_cast<int>(plan_.rows.size()); }
  /// The node of the rank's next action.
  int node(int rank) const;

  // Events.
  /// Schedules the next step of a message.
  void push(double time, int message) { events_.push({time, rank_count() + message}); }
  /// Time of the next event; infinity if there is none.
  double next_time() const;
  /// Runs actions of a rank until another event is due before its next action.
  void run_rank(int rank);
  /// Advances the rank's next action, or pair of overlapping actions. Returns false if it must wait
  /// for an event, or if no action is left.
  bool perform(int rank);
  /// Starts the next `count` actions and moves the rank's clock to their known end, or finishes
  /// them if nothing intervened.
  bool compute(int rank, int count);
  /// Starts the exchanges of gradients that the action completes; it ends at the rank's clock.
  void start_reductions(int rank, const Action& action);
  /// Handles transfers, REDUCE and STEP. A REDUCE before the row's last compute does not wait: STEP
  /// does, or a REDUCE in the row's tail.
  bool other(int rank, const Action& action);
  bool reduced(int rank, int stage);
  /// The last rank that reaches STEP runs it for all.
  bool step(int rank);
  double norm(int rank) const { return costs_.ranks.empty() ? 0 : costs_.ranks[at(rank)].norm; }

  // Messages.
  /// In a plan without SENDs, keeps the outputs of an action for post_outputs() at its end, so that
  /// links receive messages in order of time.
  void keep_outputs(int rank, const Action& action);
  bool post_outputs(int rank);
  /// The message that the action reads from another rank, or -1.
  int input_of(const Action& action) const;
  /// Waits for the inputs of the action. Returns whether they are available.
  bool await(int rank, const Action& action);
  /// Adds the receiver's part of a copy in shared memory.
  void copy_input(int rank, const Action& action);
  /// Waits for a message. Returns false if it has not been sent.
  bool arrived(int rank, int message, Wait wait);
  /// The outbox from which the action takes a buffer, or null.
  Outbox* outbox_of(int rank, const Action& action);
  bool has_buffer(int rank, const Outbox& outbox);
  /// When `rank` polls its transfers next, if nothing of its own is due before `time`: between
  /// units, or immediately if it waits.
  double look(int rank, double time) const;
  bool post(int rank, const Action& action);
  void posted(int message);
  void proceed(int message, double time);
  /// Wakes the ranks that wait for the message.
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
  std::vector<int> row_begin_;  // by rank: the first node of its row; and the total
  std::vector<Delay> delays_;   // by node
  std::vector<Rank> ranks_;
  std::vector<int> in_step_;
  std::vector<std::pair<int, Interval>> steps_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Timeline timeline_;
};

}  // namespace concertina
