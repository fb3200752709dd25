#include "parallel/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "core/error.h"
#include "parallel/plan/plan_graph.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/bucket_clock.h"
#include "parallel/simulate/link_clock.h"

namespace concertina {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// An activation or a gradient on its way from one rank to another.
struct Message {
  double sent = -1, posted = -1, end = -1;  // -1: not yet
  double start = 0;                         // of its way
  int sender = -1, receiver = -1;           // nodes that posted its ends
  int behind = -1;                          // node that the message before it on its link is from
  int waiter = -1;                          // rank that stands still until it has come
  double receive_cpu = 0;                   // seconds

  /// The node that it would have come earlier without.
  int cause() const { return behind >= 0 ? behind : sent >= posted ? sender : receiver; }
};

struct Event {
  double time;
  int who;  // a rank, or ranks + index of a bucket's start
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : who > other.who;
  }
};

/// Why a node started when it did: the node before it, if not that of its row.
struct Cause {
  int node = -1;
  Wait wait = Wait::none;
};

class Simulation {
 public:
  Simulation(const Plan& plan, const Layout& layout, const Costs& costs)
      : plan_(plan),
        costs_(costs),
        stages_(stage_infos(layout)),
        links_(costs),
        buckets_(layout, costs, ranks()),
        position_(plan.rows.size(), 0),
        clock_(plan.rows.size(), 0.0),
        unsent_(plan.rows.size()),
        outboxes_(plan.rows.size()) {
    cell_begin_.push_back(0);
    for (const StageInfo& stage : stages_) {
      cell_begin_.push_back(cell_begin_.back() + stage.last_microbatch - stage.first_microbatch);
      stage_of_.resize(at(cell_begin_.back()), static_cast<int>(cell_begin_.size()) - 2);
    }
    messages_.resize(2 * at(cell_begin_.back()));
    row_begin_.push_back(0);
    for (const std::vector<Action>& row : plan.rows) {
      row_begin_.push_back(row_begin_.back() + static_cast<int>(row.size()));
      timeline_.rows.emplace_back(row.size());
      transfers_ = transfers_ || std::any_of(row.begin(), row.end(), [](const Action& action) {
                     return is_transfer(action.kind);
                   });
      if (!row.empty() && row.back().kind == Kind::STEP) ++steps_left_;
    }
    causes_.resize(at(row_begin_.back()));
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
        start_bucket(starts_[at(event.who - ranks())]);
    }
    for (int rank = 0; rank < ranks(); ++rank)
      CONCERTINA_CHECK(position_[at(rank)] == plan_.rows[at(rank)].size(),
                       "the plan to simulate deadlocks: check it first");
    summarize();
    trace_path();
    return std::move(timeline_);
  }

 private:
  int ranks() const { return static_cast<int>(plan_.rows.size()); }
  int node(int rank) const { return row_begin_[at(rank)] + static_cast<int>(position_[at(rank)]); }

  /// Message 2 * cell is what F of this stage and microbatch reads, 2 * cell + 1 what B or I does.
  int cell(int stage, int microbatch) const {
    const bool known = stage >= 0 && stage < static_cast<int>(stages_.size()) &&
                       microbatch >= stages_[at(stage)].first_microbatch &&
                       microbatch < stages_[at(stage)].last_microbatch;
    CONCERTINA_CHECK(known, "stage {} has no microbatch {}", stage, microbatch);
    return cell_begin_[at(stage)] + microbatch - stages_[at(stage)].first_microbatch;
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
      start = clock_[at(rank)];
      for (int i = 0; i < count; ++i) clock_[at(rank)] += seconds(row[position + at(i)]);
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
      Message& one = messages_[at(message)];
      one.sent = one.posted = clock_[at(rank)];
      one.sender = one.receiver = node(rank) - 1;
      carry(message, rank, stages_[at(stage_of_[at(message / 2)])].rank);
    }
    return !unsent.empty();
  }

  double seconds(const Action& action) const {
    const StageCosts& stage = costs_.stages[at(action.stage)];
    if (action.kind == Kind::F) return stage.forward;
    if (action.kind == Kind::I) return stage.input;
    if (action.kind == Kind::W) return stage.weight;
    return stage.input + stage.weight + stage.fused;
  }

  static bool makes_input_gradient(const Action& action) {
    return action.kind == Kind::B || action.kind == Kind::I;
  }
  /// What the action reads from another rank, or -1.
  int input_of(const Action& action) const {
    const StageInfo& stage = stages_[at(action.stage)];
    const int own = cell(action.stage, action.microbatch);
    if (action.kind == Kind::F && stage.remote_previous) return 2 * own;
    if (makes_input_gradient(action) && stage.receives_gradient) return 2 * own + 1;
    return -1;
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
      clock_[at(rank)] += std::exchange(messages_[at(message)].receive_cpu, 0.0);
  }

  /// What follows from an action that ends now.
  void finish(int rank, const Action& action) {
    const StageInfo& stage = stages_[at(action.stage)];
    if (Outbox* outbox = outbox_of(rank, action)) ++outbox->taken;
    if (action.kind == Kind::B || action.kind == Kind::W)
      for (const BucketClock::Start& start :
           buckets_.gradient(action.stage, clock_[at(rank)], node(rank))) {
        starts_.push_back(start);
        events_.push({start.time, ranks() + static_cast<int>(starts_.size()) - 1});
      }
    if (transfers_) return;
    if (action.kind == Kind::F && stage.remote_next)
      unsent_[at(rank)].push_back(2 * cell(action.stage + 1, action.microbatch));
    if (makes_input_gradient(action) && stage.sends_gradient)
      unsent_[at(rank)].push_back(2 * cell(action.stage - 1, action.microbatch) + 1);
  }

  /// Transfers, REDUCE and STEP.
  bool other(int rank, const Action& action) {
    if (action.kind == Kind::STEP) return step(rank);
    if (action.kind != Kind::REDUCE) return post(rank, action);
    int late = -1;
    if (!buckets_.reduce(rank, action.stage, clock_[at(rank)], late)) return false;
    if (late >= 0) causes_[at(node(rank))] = {late, Wait::reduction};
    return true;
  }

  /// Waits for a message; false if it is not even on its way.
  bool arrived(int rank, int message, Wait wait) {
    Message& one = messages_[at(message)];
    if (one.end < 0) {
      one.waiter = rank;
      return false;
    }
    if (one.end > clock_[at(rank)]) {
      const double watched = one.end - std::max(clock_[at(rank)], one.start);
      one.receive_cpu = std::max(0.0, one.receive_cpu - watched);
      clock_[at(rank)] = one.end;
      causes_[at(node(rank))] = {one.cause(), wait};
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

  /// When `rank` looks at its transfers next, from `time` on: between units, or at once where it
  /// waits. What it does behind its present action is not known yet.
  double look(int rank, double time) const {
    if (position_[at(rank)] == 0 || time >= clock_[at(rank)]) return time;
    const std::size_t last = position_[at(rank)] - 1;
    const Action& action = plan_.rows[at(rank)][last];
    const Interval& interval = timeline_.rows[at(rank)][last];
    if (!is_compute(action.kind) || time <= interval.start) return time;
    const int units = costs_.stages[at(action.stage)].units;
    if (units == 0) return time;
    const double unit = (interval.end - interval.start) / units;
    return std::min(interval.end,
                    interval.start + std::ceil((time - interval.start) / unit) * unit);
  }

  bool post(int rank, const Action& action) {
    const bool forward = action.kind == Kind::SEND_F || action.kind == Kind::RECV_F;
    const bool send = is_send(action.kind);
    const int reader = action.stage + (send ? (forward ? 1 : -1) : 0);
    const int message = 2 * cell(reader, action.microbatch) + (forward ? 0 : 1);
    const int peer = stages_[at(send ? reader : action.stage + (forward ? -1 : 1))].rank;
    Message& one = messages_[at(message)];
    double& now = clock_[at(rank)];
    now += costs_.post;
    const LinkCosts& link = costs_.link(rank, peer);
    const double copy = send ? costs_.boundary_bytes * link.send_cpu : 0;
    // A link carries a message while it is copied; without one, the copy comes first.
    (send ? one.sent : one.posted) = now + (std::isinf(link.bandwidth) ? copy : 0);
    now += copy;
    (send ? one.sender : one.receiver) = node(rank);
    if (send && !forward) outboxes_[at(rank)].gradients.sends.push_back(message);
    if (send && forward && stages_[at(action.stage)].sends_unanswered())
      outboxes_[at(rank)].activations.sends.push_back(message);
    if (one.sent >= 0 && one.posted >= 0) carry(message, send ? rank : peer, send ? peer : rank);
    return true;
  }

  void carry(int message, int from, int to) {
    Message& one = messages_[at(message)];
    double ready = std::max(one.sent, one.posted);
    if (!std::isinf(costs_.link(from, to).bandwidth)) ready = look(from, look(to, ready));
    const auto passage = links_.carry(from, to, costs_.boundary_bytes, ready, one.cause());
    one.start = passage.start;
    one.end = passage.end;
    one.behind = passage.behind;
    one.receive_cpu = costs_.boundary_bytes * costs_.link(from, to).receive_cpu;
    if (one.waiter >= 0) events_.push({one.end, std::exchange(one.waiter, -1)});
  }

  void start_bucket(const BucketClock::Start& start) {
    for (const int rank : buckets_.start(start, links_)) events_.push({start.time, rank});
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
        causes_[at(row_begin_[at(one)] + last)] = {latest_node - 1, Wait::all_ranks};
      steps_.emplace_back(one, Interval{start - norm(one), ends[at(one)]});
    }
    return true;
  }
  double norm(int rank) const { return costs_.ranks.empty() ? 0 : costs_.ranks[at(rank)].norm; }

  void summarize() {
    for (const auto& [rank, interval] : steps_) timeline_.rows[at(rank)].back() = interval;
    for (const std::vector<Interval>& row : timeline_.rows)
      for (const Interval& interval : row)
        timeline_.makespan = std::max(timeline_.makespan, interval.end);
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::vector<Action>& row = plan_.rows[at(rank)];
      double busy = 0;
      for (std::size_t i = 0; i < row.size(); ++i)
        if (is_compute(row[i].kind))
          busy += seconds(row[i]);
        else if (row[i].kind == Kind::STEP)
          busy += timeline_.rows[at(rank)][i].end - timeline_.rows[at(rank)][i].start;
      timeline_.busy.push_back(busy);
      timeline_.bubble.push_back(timeline_.makespan > 0 ? 1 - busy / timeline_.makespan : 0);
      timeline_.peak_activations.push_back(
          static_cast<int>(peak_saved(row, [&](int stage) { return saves(stage, 1); })));
      timeline_.peak_activation_bytes.push_back(peak_saved(
          row, [&](int stage) { return saves(stage, costs_.stages[at(stage)].saved_bytes); }));
    }
    timeline_.mean_bubble = std::accumulate(timeline_.bubble.begin(), timeline_.bubble.end(), 0.0) /
                            static_cast<double>(std::max<std::size_t>(1, timeline_.bubble.size()));
  }

  std::size_t saves(int stage, std::size_t amount) const {
    return stages_[at(stage)].trains ? amount : 0;
  }

  /// Backwards from the action that ends last, along what each one had to wait for.
  void trace_path() {
    int last = -1;
    double end = -1;
    for (int rank = 0; rank < ranks(); ++rank)
      if (const auto& row = timeline_.rows[at(rank)]; !row.empty() && row.back().end > end) {
        end = row.back().end;
        last = row_begin_[at(rank) + 1] - 1;
      }
    for (int node = last; node >= 0;) {
      const auto row = std::upper_bound(row_begin_.begin(), row_begin_.end(), node) - 1;
      const int rank = static_cast<int>(row - row_begin_.begin()), position = node - *row;
      const std::vector<Interval>& times = timeline_.rows[at(rank)];
      // An overlapped pair is one step of the path, the first of the two.
      if (position > 0 && plan_.rows[at(rank)][at(position - 1)].overlapped) {
        --node;
        continue;
      }
      const double before = position > 0 ? times[at(position - 1)].end : 0;
      const Cause& cause = causes_[at(node)];
      timeline_.critical_path.push_back(
          {rank, position, cause.wait, times[at(position)].start - before});
      node = cause.node >= 0 ? cause.node : position > 0 ? node - 1 : -1;
    }
    std::reverse(timeline_.critical_path.begin(), timeline_.critical_path.end());
  }

  const Plan& plan_;
  const Costs& costs_;
  const std::vector<StageInfo> stages_;
  LinkClock links_;
  BucketClock buckets_;
  bool transfers_ = false;
  int steps_left_ = 0;
  std::vector<int> cell_begin_;  // by stage: cells of its microbatches
  std::vector<int> stage_of_;    // by cell
  std::vector<int> row_begin_;   // by rank: nodes of its row
  std::vector<Message> messages_;
  std::vector<Cause> causes_;  // by node
  std::vector<std::size_t> position_;
  std::vector<double> clock_;
  std::vector<std::vector<int>> unsent_;  // by rank: see post_outputs()
  std::vector<Outboxes> outboxes_;        // by rank
  std::vector<BucketClock::Start> starts_;
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
