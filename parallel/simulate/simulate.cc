#include "parallel/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "core/error.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/bucket_clock.h"
#include "parallel/simulate/message_clock.h"

namespace concertina {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

struct Event {
  double time;
  int who;  // a rank, or ranks + index of what else is due
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : who > other.who;
  }
};

/// A message's next step, or the start of a bucket's exchange.
struct Due {
  int message = -1;
  BucketClock::Start start;
};

class Simulation {
 public:
  Simulation(const Plan& plan, const Layout& layout, const Costs& costs)
      : plan_(plan),
        costs_(costs),
        stages_(stage_infos(layout)),
        links_(costs),
        messages_(stages_, costs, links_,
                  [this](int rank, double time) { return look(rank, time); }),
        buckets_(layout, costs, ranks()),
        position_(plan.rows.size(), 0),
        clock_(plan.rows.size(), 0.0),
        debt_(plan.rows.size(), 0.0),
        unsent_(plan.rows.size()),
        outboxes_(plan.rows.size()) {
    row_begin_.push_back(0);
    for (const std::vector<Action>& row : plan.rows) {
      row_begin_.push_back(row_begin_.back() + static_cast<int>(row.size()));
      timeline_.rows.emplace_back(row.size());
      transfers_ = transfers_ || std::any_of(row.begin(), row.end(), [](const Action& action) {
                     return is_transfer(action.kind);
                   });
      if (!row.empty() && row.back().kind == Kind::STEP) ++steps_left_;
    }
    delays_.resize(at(row_begin_.back()));
  }

  Timeline run() && {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (!costs_.ranks.empty()) clock_[at(rank)] = costs_.ranks[at(rank)].load;
      events_.push({clock_[at(rank)], rank});
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.who < ranks())
        run_rank(event.who);
      else
        run(due_[at(event.who - ranks())], event.time);
    }
    for (int rank = 0; rank < ranks(); ++rank)
      CONCERTINA_CHECK(position_[at(rank)] == plan_.rows[at(rank)].size(),
                       "the plan to simulate deadlocks: check it first");
    for (const auto& [rank, interval] : steps_) timeline_.rows[at(rank)].back() = interval;
    complete(timeline_, plan_, stages_, costs_, delays_);
    return std::move(timeline_);
  }

 private:
  int ranks() const { return static_cast<int>(plan_.rows.size()); }
  int node(int rank) const { return row_begin_[at(rank)] + static_cast<int>(position_[at(rank)]); }

  void push(double time, const Due& due) {
    due_.push_back(due);
    events_.push({time, ranks() + static_cast<int>(due_.size()) - 1});
  }
  void run(Due due, double time) {
    if (due.message >= 0) return proceed(due.message, time);
    for (const int rank : buckets_.start(due.start, links_)) events_.push({time, rank});
  }

  /// Actions of a rank, as long as nothing else is due before its next one.
  void run_rank(int rank) {
    while (perform(rank))
      if (!events_.empty() && events_.top().time < clock_[at(rank)])
        return events_.push({clock_[at(rank)], rank});
  }

  /// The rank's next action, or pair of actions that overlap; false if it has to wait for an event,
  /// or has none.
  bool perform(int rank) {
    if (post_outputs(rank)) return true;
    const std::vector<Action>& row = plan_.rows[at(rank)];
    std::size_t& position = position_[at(rank)];
    if (position == row.size()) return false;
    const Action& action = row[position];
    const int count = action.overlapped ? 2 : 1;
    double start = clock_[at(rank)];
    if (is_compute(action.kind)) {
      if (!await(rank, action) || (count == 2 && !await(rank, row[position + 1]))) return false;
      for (int i = 0; i < count; ++i) copy_input(rank, row[position + at(i)]);
      start = clock_[at(rank)] += std::exchange(debt_[at(rank)], 0.0);
      for (int i = 0; i < count; ++i) clock_[at(rank)] += costs_.seconds(row[position + at(i)]);
      for (int i = 0; i < count; ++i) finish(rank, row[position + at(i)]);
    } else if (!other(rank, action)) {
      return false;
    }
    for (int i = 0; i < count; ++i)
      timeline_.rows[at(rank)][position++] = {start, clock_[at(rank)]};
    return true;
  }

  /// In a plan without SENDs: what the rank's last action made. At its end, not before, so that
  /// links see messages in order of time.
  bool post_outputs(int rank) {
    std::vector<int> unsent = std::move(unsent_[at(rank)]);
    unsent_[at(rank)].clear();
    for (const int message : unsent) {
      Message& one = messages_[message];
      one.sent = one.posted = clock_[at(rank)];
      one.sender = one.receiver = node(rank) - 1;
      posted(message);
    }
    return !unsent.empty();
  }

  static bool makes_input_gradient(const Action& action) {
    return action.kind == Kind::B || action.kind == Kind::I;
  }
  /// What the action reads from another rank, or -1.
  int input_of(const Action& action) const {
    const StageInfo& stage = stages_[at(action.stage)];
    const bool back = makes_input_gradient(action);
    const bool remote =
        back ? stage.receives_gradient : action.kind == Kind::F && stage.remote_previous;
    const int message = messages_.find(action.stage, action.microbatch, back);
    return remote ? message : -1;
  }

  bool await(int rank, const Action& action) {
    const bool back = makes_input_gradient(action);
    if (const int message = input_of(action);
        message >= 0 && !arrived(rank, message, back ? Wait::gradient : Wait::input))
      return false;
    Outbox* outbox = transfers_ ? outbox_of(rank, action) : nullptr;
    return outbox == nullptr || has_buffer(rank, *outbox);
  }

  /// The receiver's part of the copy, as far as it was not done while the message came.
  void copy_input(int rank, const Action& action) {
    if (const int message = input_of(action); message >= 0)
      clock_[at(rank)] += std::exchange(messages_[message].receive_cpu, 0.0);
  }

  /// What follows from an action that ends now.
  void finish(int rank, const Action& action) {
    const StageInfo& stage = stages_[at(action.stage)];
    if (Outbox* outbox = outbox_of(rank, action)) ++outbox->taken;
    if (action.kind == Kind::B || action.kind == Kind::W)
      for (const BucketClock::Start& start :
           buckets_.gradient(action.stage, clock_[at(rank)], node(rank)))
        push(start.time, {-1, start});
    if (transfers_) return;
    if (action.kind == Kind::F && stage.remote_next)
      unsent_[at(rank)].push_back(messages_.find(action.stage + 1, action.microbatch, false));
    if (makes_input_gradient(action) && stage.sends_gradient)
      unsent_[at(rank)].push_back(messages_.find(action.stage - 1, action.microbatch, true));
  }

  /// Transfers, REDUCE and STEP.
  bool other(int rank, const Action& action) {
    if (action.kind == Kind::STEP) return step(rank);
    if (action.kind != Kind::REDUCE) return post(rank, action);
    int late = -1;
    if (!buckets_.reduce(rank, action.stage, clock_[at(rank)], late)) return false;
    if (late >= 0) delays_[at(node(rank))] = {late, Wait::reduction};
    return true;
  }

  /// Waits for a message; false if it is not even on its way.
  bool arrived(int rank, int message, Wait wait) {
    Message& one = messages_[message];
    if (one.end < 0) {
      one.waiter = rank;
      return false;
    }
    if (one.end > clock_[at(rank)]) {
      const double watched = one.end - std::max(clock_[at(rank)], one.start);
      one.receive_cpu = std::max(0.0, one.receive_cpu - watched);
      debt_[at(rank)] = std::max(0.0, debt_[at(rank)] - (one.end - clock_[at(rank)]));
      clock_[at(rank)] = one.end;
      delays_[at(node(rank))] = {one.cause(), wait};
    }
    return true;
  }

  /// Buffers for messages that nothing answers (kSendBuffers).
  struct Outbox {
    std::vector<int> sends;  // messages, in the order of the row
    int taken = 0;
  };
  struct Outboxes {
    Outbox gradients, activations;
  };

  /// From which the action takes a buffer, or null.
  Outbox* outbox_of(int rank, const Action& action) {
    const StageInfo& stage = stages_[at(action.stage)];
    if (makes_input_gradient(action) && stage.sends_gradient) return &outboxes_[at(rank)].gradients;
    if (action.kind == Kind::F && stage.sends_unanswered()) return &outboxes_[at(rank)].activations;
    return nullptr;
  }

  bool has_buffer(int rank, const Outbox& outbox) {
    const int oldest = outbox.taken - kSendBuffers;
    if (oldest < 0) return true;
    CONCERTINA_CHECK(oldest < static_cast<int>(outbox.sends.size()),
                     "the plan to simulate deadlocks: check it first");
    return arrived(rank, outbox.sends[at(oldest)], Wait::send_buffer);
  }

  /// When `rank` looks at its transfers next, if nothing of it is due before `time`: between units,
  /// or at once where it waits.
  double look(int rank, double time) const {
    if (position_[at(rank)] == 0 || time >= clock_[at(rank)]) return time;
    const std::size_t last = position_[at(rank)] - 1;
    const Action& action = plan_.rows[at(rank)][last];
    const Interval& interval = timeline_.rows[at(rank)][last];
    if (!is_compute(action.kind) || time < interval.start) return time;
    const int units = costs_.stages[at(action.stage)].units;
    if (units == 0) return time;
    const double unit = (interval.end - interval.start) / units;
    const double next = std::floor((time - interval.start) / unit) + 1;
    return std::min(interval.end, interval.start + next * unit);
  }

  bool post(int rank, const Action& action) {
    const bool forward = action.kind == Kind::SEND_F || action.kind == Kind::RECV_F;
    const bool send = is_send(action.kind);
    const int reader = action.stage + (send ? (forward ? 1 : -1) : 0);
    const int message = messages_.find(reader, action.microbatch, !forward);
    Message& one = messages_[message];
    double& now = clock_[at(rank)];
    now += costs_.post;
    if (const LinkCosts& link = costs_.link(messages_.from(message), messages_.to(message));
        send && std::isinf(link.bandwidth))
      now += costs_.boundary_bytes * link.send_cpu;  // the copy comes first
    (send ? one.sent : one.posted) = now;
    (send ? one.sender : one.receiver) = node(rank);
    if (send && !forward) outboxes_[at(rank)].gradients.sends.push_back(message);
    if (send && forward && stages_[at(action.stage)].sends_unanswered())
      outboxes_[at(rank)].activations.sends.push_back(message);
    posted(message);
    return true;
  }

  void posted(int message) {
    if (const auto next = messages_.posted(message)) push(*next, {message, {}});
    passed(message);
  }
  void proceed(int message, double time) {
    std::optional<double> next = messages_.proceed(message, time);
    while (next && *next == time) next = messages_.proceed(message, time);
    if (next) push(*next, {message, {}});
    passed(message);
  }
  /// Its ranks' time, and who waits for it.
  void passed(int message) {
    Message& one = messages_[message];
    debt_[at(messages_.from(message))] += std::exchange(one.send_cpu, 0.0);
    if (one.end >= 0 && one.waiter >= 0) events_.push({one.end, std::exchange(one.waiter, -1)});
  }

  /// The last rank that comes to STEP runs it for all.
  bool step(int rank) {
    if (--steps_left_ > 0) {
      in_step_.push_back(rank);
      return true;
    }
    in_step_.push_back(rank);
    int latest = rank;
    double start = 0;
    for (const int one : in_step_)
      if (const double met = clock_[at(one)] + norm(one); met > start) {
        start = met;
        latest = one;
      }
    if (ranks() > 1) start += (costs_.hosts.empty() ? costs_.local : costs_.remote).latency;
    const std::vector<double> ends = buckets_.update(start, links_);
    for (const int one : in_step_) {
      const int last = static_cast<int>(plan_.rows[at(one)].size()) - 1;
      const int latest_node = row_begin_[at(latest) + 1] - 1;
      if (one != latest && latest_node > row_begin_[at(latest)])
        delays_[at(row_begin_[at(one)] + last)] = {latest_node - 1, Wait::all_ranks};
      steps_.emplace_back(one, Interval{start - norm(one), ends[at(one)]});
    }
    return true;
  }
  double norm(int rank) const { return costs_.ranks.empty() ? 0 : costs_.ranks[at(rank)].norm; }

  const Plan& plan_;
  const Costs& costs_;
  const std::vector<StageInfo> stages_;
  LinkClock links_;
  MessageClock messages_;
  BucketClock buckets_;
  bool transfers_ = false;
  int steps_left_ = 0;
  std::vector<int> row_begin_;  // by rank: nodes of its row
  std::vector<Delay> delays_;   // by node
  std::vector<std::size_t> position_;
  std::vector<double> clock_;
  std::vector<double> debt_;              // of transfers, still to be taken before it computes
  std::vector<std::vector<int>> unsent_;  // by rank: see post_outputs()
  std::vector<Outboxes> outboxes_;        // by rank
  std::vector<Due> due_;
  std::vector<int> in_step_;
  std::vector<std::pair<int, Interval>> steps_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Plan& plan, const Layout& layout, const Costs& costs) {
  CONCERTINA_CHECK(static_cast<int>(costs.stages.size()) == layout.stage_count(),
                   "costs of {} stages for {} stages", costs.stages.size(), layout.stage_count());
  return Simulation(plan, layout, costs).run();
}

}  // namespace concertina
