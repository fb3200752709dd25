// Times of the messages of exchanges: phase by phase, posted step by step, as in communicators
// (core/model/exchange_order.h, parallel/comm/mpi_work.h).
// Invariants: in each phase, exchanges of a group start in the same order on all its ranks; a phase
// begins on a holder when its previous phase has ended; a message starts once both ends are posted;
// it is done on the receiver at its arrival, and on the sender at the arrival of the receiver's
// reply, which queues in the links; events are in order of time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <queue>
#include <vector>

#include "parallel/simulate/exchange_routes.h"
#include "parallel/simulate/link_clock.h"

namespace concertina {

class ExchangeClock {
 public:
  /// Adds a group of ranks that exchange with each other on `routes`, which must outlive this
  /// object. Returns its number.
  int add_group(std::vector<int> ranks, const ExchangeRoutes& routes);
  /// Adds an exchange of `group`, with `piece_bytes` per piece. Returns its number in the group.
  int add_exchange(int group, std::shared_ptr<const ExchangeLoad> load, double piece_bytes);

  /// Records that action `node` completes the part of `holder` at `time`, which is not before the
  /// last event. The exchange is posted after the holder's previous ones.
  void begin(int group, int exchange, int holder, double time, int node);

  double next_time() const {
    return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().time;
  }
  /// A newly determined end of an exchange on one holder.
  struct End {
    int group = 0, exchange = 0, holder = 0;
  };
  /// Handles the next event. Returns the ends that it determines.
  const std::vector<End>& advance(LinkClock& links);

  /// Progress of an exchange on one of its holders, in its last phase.
  struct Progress {
    int missing = 0;    // messages to and from the holder whose end is unknown, plus its start
    double end = 0;     // latest known end
    int late = -1;      // the action that determined `end`
    double begun = -1;  // time of posting; < 0: not yet
    int node = -1;      // the action that completed its part
    bool ready = false;
  };
  const Progress& progress(int group, int exchange, int holder) const {
    const Lane& last =
        lanes_[static_cast<std::size_t>(groups_[static_cast<std::size_t>(group)]) - 1];
    return last.progress[static_cast<std::size_t>(exchange) * last.ranks.size() +
                         static_cast<std::size_t>(holder)];
  }

 private:
  struct Open {
    int step = 0, left = 2;  // messages that await a reply or have not arrived
    double bytes = 0;
  };
  /// The exchanges of one holder, with consecutively numbered steps.
  struct Line {
    int begun = 0;  // exchanges
    int next = 0;   // next step to post
    double bytes = 0;
    std::vector<Open> open;
  };
  struct Load {
    std::shared_ptr<const ExchangeLoad> load;
    double piece_bytes = 0;
  };
  /// One phase of all exchanges of a group.
  struct Lane {
    int group = 0, phase = 0;
    bool last = false;  // the last one of its group
    std::vector<int> ranks;
    const std::vector<ExchangeStep>* steps = nullptr;  // steps of each exchange
    std::vector<Load> loads;                           // by exchange
    std::vector<Line> lines;
    std::vector<Progress> progress;  // by exchange and holder

    int step_count() const { return static_cast<int>(steps->size()); }
    const ExchangeStep& step(int number) const;
    double bytes(int number, int holder) const;
  };
  struct Event {
    double time = 0;
    std::int64_t made = 0;  // orders simultaneous events
    enum class Kind { ready, arrived, answered } kind = Kind::ready;
    int lane = 0, holder = 0;  // the holder that has its part, or sent a message
    int index = -1;            // the exchange, or the step of the message
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : made > other.made;
    }
  };

  void begun(Lane& lane, const Event& event, LinkClock& links);
  void post(Lane& lane, int holder, double now, LinkClock& links);
  bool may_post(const Lane& lane, const Line& line) const;
  void carry(Lane& lane, int step, int from, double now, LinkClock& links);
  void arrived(Lane& lane, const Event& event, LinkClock& links);
  void known(Lane& lane, int exchange, int holder, double end, int late);
  void add_event(double time, Event::Kind kind, int lane, int holder, int index) {
    events_.push({time, events_made_++, kind, lane, holder, index});
  }
  int number(const Lane& lane) const { return static_cast<int>(&lane - lanes_.data()); }
  static void close(Line& line, int step);

  std::vector<Lane> lanes_;  // consecutive phases of each group
  std::vector<int> groups_;  // the end of each group's lanes
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t events_made_ = 0;
  std::vector<End> ends_;
};

}  // namespace concertina
