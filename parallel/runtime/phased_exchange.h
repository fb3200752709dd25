// The exchanges of some ranks, phase by phase (parallel/plan/exchange_scheme.h).
// Invariants: each phase has a communicator of its own, and all ranks begin that phase of their
// exchanges in one order, as FIFO channels without tags demand; nothing here waits for a rank but
// wait(); no call after add() allocates.
#pragma once

#include <functional>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

class PhasedExchange {
 public:
  struct Messages {
    std::vector<Send> sends;
    std::vector<Receive> receives;
  };

  /// `groups`: the communicator of each phase; none where a rank is alone, in one phase of nothing.
  /// `ended` is told of each phase that is over on this rank, before the next one begins.
  PhasedExchange(std::vector<Communicator*> groups,
                 std::function<void(int exchange, int phase)> ended);

  /// Adds the next exchange and returns its number; `phases` has the messages of each phase.
  int add(std::vector<Messages> phases);
  /// Makes room in the communicators for all that was added.
  void reserve();

  /// An exchange that is left out has no part until it is taken in again. The same on all ranks.
  void leave_out(int exchange, bool out) { exchanges_[index(exchange)].out = out; }
  /// Makes the exchange ready, as what it sends first is there: it begins once those before it
  /// have.
  void begin(int exchange);
  /// Tests what is under way and begins what may follow; never waits.
  void progress() { progress(-1); }
  /// Waits until the exchange is over, and drives the others meanwhile.
  void wait(int exchange);
  /// Makes ready for the next step, once every exchange is over.
  void reset();

 private:
  struct Exchange {
    std::vector<Messages> phases;
    Work work;
    int begun = 0, ended = 0;  // phases
    bool ready = false, out = false;
  };

  static std::size_t index(int exchange) { return static_cast<std::size_t>(exchange); }
  int phases() const { return static_cast<int>(next_.size()); }
  void begin_what_may();
  void progress(int but);
  void end_phase(int exchange);

  std::vector<Communicator*> groups_;
  std::function<void(int, int)> ended_;
  std::vector<Exchange> exchanges_;
  std::vector<std::size_t> next_;  // exchange to begin, by phase
};

}  // namespace concertina
