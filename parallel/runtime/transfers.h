// The messages between stages of this rank and stages of other ranks.
// Invariants: a wait yields the core and feeds the watchdog; every wait is recorded, as is the time
// when a message is observed to be complete; nothing is allocated after connect().
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
  /// References must outlive this object.
  Transfers(const Layout& layout, TraceRecorder& recorder);
  Transfers(const Transfers&) = delete;  // referenced by pending transfers
  Transfers& operator=(const Transfers&) = delete;

  /// Attaches the buffers of messages without an answer, `bytes` each.
  void attach(Arena& arena, const RowMemory& memory, std::size_t bytes);
  /// `row` is this rank's; `most` is the maximum number of concurrent messages. Collective.
  void connect(Communicator& world, Watchdog* watchdog, const std::vector<Action>& row, int most);

  /// `action` is the SEND or RECV. `work` must not move until wait() has returned.
  void start(const Action& action, View message, Work& work);
  void wait(const Action& action, Work& work);

  /// Takes a buffer for a SEND without an answer. It becomes free when its message is known to be
  /// complete, which is checked only when a buffer is needed and all are in use.
  void* take_buffer(Kind send);
  void post(const Action& send, View message);
  /// Waits until the oldest of these messages is complete.
  void reclaim_oldest(Kind send);
  void reclaim_all();

  /// Polls pending messages; never waits.
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
    bool over = false;  // observed to be complete
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
  std::vector<Open> open_;  // not waited for yet
  Outbox input_grads_, frozen_outputs_;
};

}  // namespace concertina
