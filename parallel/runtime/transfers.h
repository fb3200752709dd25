// The messages between the stages of this rank and those of others.
// Invariants: a wait yields the core and feeds the watchdog; every wait is recorded, and so is the
// moment in which a message is seen to be over; nothing is allocated after connect().
#pragma once

#include <cstddef>
#include <vector>

#include "core/arena.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/runtime/buffer_pool.h"
#include "parallel/runtime/trace_recorder.h"

namespace concertina {

class Transfers {
 public:
  /// References outlive it.
  Transfers(const Layout& layout, TraceRecorder& recorder);
  Transfers(const Transfers&) = delete;  // what is under way points into it
  Transfers& operator=(const Transfers&) = delete;

  /// The buffers of messages that nothing answers, `bytes` each.
  void attach(Arena& arena, const RowMemory& memory, std::size_t bytes);
  /// Collective. `row`: of this rank; `most`: messages under way at a time.
  void connect(Communicator& world, Watchdog* watchdog, const std::vector<Action>& row, int most);

  /// `action`: the SEND or RECV. `work` stays where it is until wait() has seen its end.
  void start(const Action& action, View message, Work& work);
  void wait(const Action& action, Work& work);

  /// Takes a buffer for a SEND that nothing answers: it is free once its message is known to be
  /// over, which is when one is needed and all are in use.
  void* take_buffer(Kind send);
  void post(const Action& send, View message);
  /// Waits until the oldest such message is over.
  void reclaim_oldest(Kind send);
  void reclaim_all();

  /// Tests what is under way; never waits.
  void progress();
  const BufferPool& buffers(Kind send) const {
    return send == Kind::SEND_B ? input_grads_.buffers : frozen_outputs_.buffers;
  }

 private:
  struct Open {
    Work* work = nullptr;
    Action action;
  };
  struct Sent {
    Work work;
    void* buffer = nullptr;
    Action action;
    bool over = false;  // as far as was seen
  };
  struct Outbox {
    BufferPool buffers;
    std::vector<Sent> sends;  // at most kSendBuffers, oldest first
  };

  Outbox& outbox(Kind send) { return send == Kind::SEND_B ? input_grads_ : frozen_outputs_; }
  int peer_of(const Action& transfer) const;

  const Layout& layout_;
  TraceRecorder& recorder_;
  Communicator* world_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  std::vector<Open> open_;  // that nothing has waited for yet
  Outbox input_grads_, frozen_outputs_;
};

}  // namespace concertina
