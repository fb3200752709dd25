#include "parallel/comm/staged_communicator.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/index.h"
#include "parallel/comm/staged_work.h"

namespace concertina {
namespace {

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(Communicator& transport, std::shared_ptr<StagingDesk> desk)
      : transport_(transport), desk_(std::move(desk)) {}
  StagedCommunicator(std::unique_ptr<Communicator> transport, std::shared_ptr<StagingDesk> desk)
      : own_(std::move(transport)), transport_(*own_), desk_(std::move(desk)) {}

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    drain();
    std::unique_ptr<Communicator> part = transport_.split(color, key);
    if (part == nullptr) return nullptr;
    return std::make_unique<StagedCommunicator>(std::move(part), desk_);
  }
  void reserve(std::size_t messages, std::size_t collectives, std::size_t exchanged) override {
    transport_.reserve(messages, collectives, exchanged);
    most_ = std::max({most_, exchanged, at(2 * size())});
    single_.reserve(messages, [this] { return make(single_, 1); });
    collective_.reserve(collectives, [this] { return make(collective_, most_); });
  }
  void connect(std::span<const int> peers) override { transport_.connect(peers); }

  Work isend(ConstBytes data, int to) override {
    check_rank(to, "isend");
    return staged(single_, [&](StagedWork& work) { work.send(data, to); });
  }
  Work irecv(Bytes data, int from) override {
    check_rank(from, "irecv");
    return staged(single_, [&](StagedWork& work) { work.receive(data, from); });
  }
  Work broadcast(Bytes data, int root) override {
    check_rank(root, "broadcast");
    return staged(collective_, [&](StagedWork& work) { work.broadcast(data, root); });
  }
  void barrier() override {
    drain();
    transport_.barrier();
  }
  void abort(int code) override { transport_.abort(code); }

 private:
  /// Empties the queue, so that what the transport does by itself keeps the order of calls too.
  /// Copies end by themselves.
  void drain() {
    for (; !desk_->queue.empty(); ::sched_yield()) desk_->progress();
  }

  using Pool = WorkPool<StagedWork>;
  std::unique_ptr<StagedWork> make(Pool& pool, std::size_t most) {
    return std::make_unique<StagedWork>(pool, *desk_, transport_, most);
  }
  template <class Start>
  Work staged(Pool& pool, const Start& start) {
    const std::size_t most = &pool == &single_ ? 1 : std::max(most_, at(2 * size()));
    StagedWork& state = pool.take([&] { return make(pool, most); });
    Work work(&state);
    start(state);
    return work;
  }

  void copy_own(ConstBytes from, Bytes to) override {
    desk_->memory.copy(from.data(), to.data(), from.size());
  }
  Work start_exchange(const char*, std::span<const Send> sends,
                      std::span<const Receive> receives) override {
    return staged(collective_, [&](StagedWork& work) { work.exchange(sends, receives); });
  }

  std::unique_ptr<Communicator> own_;
  Communicator& transport_;
  std::shared_ptr<StagingDesk> desk_;
  Pool single_, collective_;
  std::size_t most_ = 0;  // messages that an exchange was reserved for
};

}  // namespace

std::unique_ptr<Communicator> stage_through_host(Communicator& transport, Memory& memory) {
  return std::make_unique<StagedCommunicator>(transport, std::make_shared<StagingDesk>(memory));
}

}  // namespace concertina
