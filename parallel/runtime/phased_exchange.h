// Exchanges between some ranks, phase by phase (parallel/plan/exchange_scheme.h).
// Invariants: each phase has a separate communicator, and all ranks begin that phase of their
// exchanges in the same order, as untagged FIFO channels require; only wait() waits for other
// ranks; no call after add() allocates.
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

  /// `groups` gives the communicator of each phase; empty if the rank is alone, with one empty
  /// phase. `ended` is called when a phase is complete on this rank, before the next one begins.
  PhasedExchange(std::vector<Communicator*> groups,
                 std::function<void(int exchange, int phase)> ended);

  /// Adds an exchange with the messages of each phase, and returns its number.
  int add(std::vector<Messages> phases);
  /// Reserves capacity in the communicators for all added exchanges.
  void reserve();

  /// Skips an exchange (the same one on all ranks) until it is included again.
  void skip(int exchange, bool out) { exchanges_[index(exchange)].out = out; }
  /// Marks the exchange as ready, because its first data is available. It begins after the
  /// preceding exchanges have begun.
  void begin(int exchange);
  /// Polls pending exchanges and begins those that may follow; never waits.
  void progress() { progress(-1); }
  /// Waits until the exchange is complete, advancing the others meanwhile.
  void wait(int exchange);
  /// Prepares for the next step, once every exchange is complete.
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
  std::vector<std::size_t> next_;  // by phase: the next exchange to begin
};

}  // namespace concertina
