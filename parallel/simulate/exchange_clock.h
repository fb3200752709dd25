// When the messages of exchanges pass: phase by phase, posted step by step, as communicators do
// (core/model/exchange_order.h, parallel/comm/mpi_work.h).
// Invariants: exchanges of one group start in one order on each of its ranks, in each phase; a
// phase begins on a holder when the one before has ended there; a message passes once both its ends
// are posted; it is done on its receiver when it is there, on its sender when the receiver's answer
// is, which waits for its turn in the links; events come in order of time.
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
  /// Adds ranks that exchange with each other on `routes`, which outlive it; returns the group's
  /// number.
  int add_group(std::vector<int> ranks, const ExchangeRoutes& routes);
  /// Adds the next exchange of `group`, whose pieces have so many bytes; returns its number in it.
  int add_exchange(int group, std::shared_ptr<const ExchangeLoad> load, double piece_bytes);

  /// Holder `holder` has its part of the exchange at `time`, made by the action `node`; no earlier
  /// than the last event. It is posted after the holder's exchanges before it.
  void begin(int group, int exchange, int holder, double time, int node);

  double next_time() const {
    return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().time;
  }
  /// An end of an exchange on one holder that is known from now on.
  struct End {
    int group = 0, exchange = 0, holder = 0;
  };
  /// The next event; what ends have become known with it.
  const std::vector<End>& advance(LinkClock& links);

  /// How far an exchange is on one of its holders, in its last phase.
  struct Progress {
    int missing = 0;    // messages, to it and from it, whose end is not known, and its begin
    double end = 0;     // of those that are known, the last
    int late = -1;      // the action that the last one waited for
    double begun = -1;  // posted since; < 0: not yet
    int node = -1;      // the action that made it
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
    int step = 0, left = 2;  // messages to be answered, or to arrive
    double bytes = 0;
  };
  /// The exchanges of one holder, whose steps are numbered through.
  struct Line {
    int begun = 0;  // exchanges
    int next = 0;   // step to post
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
    bool last = false;  // of its group
    std::vector<int> ranks;
    const std::vector<ExchangeStep>* steps = nullptr;  // of each exchange
    std::vector<Load> loads;                           // by exchange
    std::vector<Line> lines;
    std::vector<Progress> progress;  // by exchange and holder

    int step_count() const { return static_cast<int>(steps->size()); }
    const ExchangeStep& step(int number) const;
    double bytes(int number, int holder) const;
  };
  struct Event {
    double time = 0;
    std::int64_t made = 0;  // among equal times the first made comes first
    enum class Kind { ready, arrived, answered } kind = Kind::ready;
    int lane = 0, holder = 0;  // that has its part of an exchange, or sent a message
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

  std::vector<Lane> lanes_;  // the phases of a group side by side
  std::vector<int> groups_;  // the end of each group's lanes
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t events_made_ = 0;
  std::vector<End> ends_;
};

}  // namespace concertina
