// When the messages of exchanges pass: posted step by step, as communicators do
// (core/exchange_order.h, parallel/comm/mpi_line.h).
// Invariants: exchanges of one group start in one order on each of its ranks; a message passes once
// both its ends are posted; it is done on its receiver when it is there, on its sender when the
// receiver's answer is, which waits for its turn in the links; events come in order of time.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "parallel/simulate/link_clock.h"

namespace concertina {

class ExchangeClock {
 public:
  /// Ranks that exchange with each other; returns the group's number.
  int add_group(std::vector<int> ranks);
  /// The next exchange of `group`; returns its number in it. `bytes[h]`: what holder h sends to
  /// each other one: what that one owns of the gradients, or its own part of the weights.
  int add_exchange(int group, std::vector<double> bytes);

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

  /// How far an exchange is on one of its holders.
  struct Progress {
    int missing = 0;    // messages, to it and from it, whose end is not known
    double end = 0;     // of those that are known, the last
    int late = -1;      // the action that the last one waited for
    double begun = -1;  // posted since; < 0: not yet
    int node = -1;      // the action that made it
    bool ready = false;
  };
  const Progress& progress(int group, int exchange, int holder) const {
    const Group& one = groups_[static_cast<std::size_t>(group)];
    return one.progress[static_cast<std::size_t>(exchange) * one.ranks.size() +
                        static_cast<std::size_t>(holder)];
  }

 private:
  /// Holder h sends to holder h + ahead, `parts` times its bytes.
  struct Step {
    int ahead = 0;
    double parts = 1;
  };
  struct Open {
    int step = 0, left = 2;  // one message to be answered, one to arrive
    double bytes = 0;
  };
  /// The exchanges of one holder, whose steps are numbered through.
  struct Line {
    int begun = 0;  // exchanges
    int next = 0;   // step to post
    double bytes = 0;
    std::vector<Open> open;
  };
  struct Group {
    std::vector<int> ranks;
    std::vector<Step> steps;  // of each exchange
    std::vector<std::vector<double>> bytes;
    std::vector<Line> lines;
    std::vector<Progress> progress;  // by exchange and holder
  };
  struct Event {
    double time = 0;
    std::int64_t made = 0;  // among equal times the first made comes first
    enum class Kind { ready, arrived, answered } kind = Kind::ready;
    int group = 0, holder = 0;  // that has its part of an exchange, or sent a message
    int index = -1;             // the exchange, or the step of the message
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : made > other.made;
    }
  };

  static std::vector<Step> steps_of(int size);
  void begun(Group& group, const Event& event, LinkClock& links);
  void post(Group& group, int number, int holder, double now, LinkClock& links);
  bool may_post(const Group& group, const Line& line) const;
  void carry(Group& group, int number, int step, int from, double now, LinkClock& links);
  void arrived(Group& group, const Event& event, LinkClock& links);
  static void close(Line& line, int step);

  std::vector<Group> groups_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t events_made_ = 0;
  std::vector<End> ends_;
};

}  // namespace concertina
