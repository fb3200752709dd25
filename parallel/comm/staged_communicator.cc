#include "parallel/comm/staged_communicator.h"

#include <map>
#include <utility>
#include <vector>

#include "core/index.h"
#include "parallel/comm/work_pool.h"

namespace concertina {
namespace {

using Buffer = std::vector<std::byte>;

/// Host buffers by size, used again.
class BufferStore {
 public:
  Buffer take(std::size_t bytes) {
    std::vector<Buffer>& idle = idle_[bytes];
    if (idle.empty()) return Buffer(bytes);
    Buffer buffer = std::move(idle.back());
    idle.pop_back();
    return buffer;
  }
  void give(Buffer buffer) { idle_[buffer.size()].push_back(std::move(buffer)); }

 private:
  std::map<std::size_t, std::vector<Buffer>> idle_;
};

/// One transfer of the transport, and where what it brings belongs.
class StagedWork final : public Work::State {
 public:
  StagedWork(WorkPool<StagedWork>& pool, BufferStore& store, Memory& memory)
      : pool_(pool), store_(store), memory_(memory) {}

  ConstBytes outgoing(ConstBytes data) {
    Buffer& buffer = pieces_.emplace_back(store_.take(data.size()), nullptr).first;
    memory_.copy(data.data(), buffer.data(), data.size());
    return buffer;
  }
  Bytes incoming(Bytes data) {
    return pieces_.emplace_back(store_.take(data.size()), data.data()).first;
  }
  void start(Work work) { work_ = std::move(work); }

  bool test() override {
    if (!work_.test()) return false;
    for (const auto& [buffer, to] : pieces_)
      if (to != nullptr) memory_.copy(buffer.data(), to, buffer.size());
    return true;
  }
  void recycle() override {
    work_ = {};
    for (auto& [buffer, to] : pieces_) store_.give(std::move(buffer));
    pieces_.clear();
    pool_.give(*this);
  }

 private:
  WorkPool<StagedWork>& pool_;
  BufferStore& store_;
  Memory& memory_;
  Work work_;
  std::vector<std::pair<Buffer, std::byte*>> pieces_;  // and where to copy it, or null
};

class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(Communicator& transport, Memory& memory)
      : transport_(transport), memory_(memory) {}
  StagedCommunicator(std::unique_ptr<Communicator> transport, Memory& memory)
      : own_(std::move(transport)), transport_(*own_), memory_(memory) {}

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    std::unique_ptr<Communicator> part = transport_.split(color, key);
    if (part == nullptr) return nullptr;
    return std::make_unique<StagedCommunicator>(std::move(part), memory_);
  }
  void reserve(std::size_t messages, std::size_t collectives) override {
    transport_.reserve(messages, collectives);
    pool_.reserve(messages + collectives, [this] { return make(); });
  }

  Work isend(ConstBytes data, int to) override {
    return staged([&](StagedWork& work) { return transport_.isend(work.outgoing(data), to); });
  }
  Work irecv(Bytes data, int from) override {
    return staged([&](StagedWork& work) { return transport_.irecv(work.incoming(data), from); });
  }
  Work broadcast(Bytes data, int root) override {
    return staged([&](StagedWork& work) {
      const Bytes buffer = work.incoming(data);
      if (rank() == root) memory_.copy(data.data(), buffer.data(), data.size());
      return transport_.broadcast(buffer, root);
    });
  }
  void barrier() override { transport_.barrier(); }
  void abort(int code) override { transport_.abort(code); }

 private:
  std::unique_ptr<StagedWork> make() {
    return std::make_unique<StagedWork>(pool_, store_, memory_);
  }
  template <class Start>
  Work staged(const Start& start) {
    StagedWork& state = pool_.take([this] { return make(); });
    Work work(&state);
    state.start(start(state));
    return work;
  }

  void copy_own(ConstBytes from, Bytes to) override {
    memory_.copy(from.data(), to.data(), from.size());
  }

  /// Every rank stages, so every rank's transport sees an all_to_all.
  Work exchange(const char*, Outgoing outgoing, std::span<const Bytes> recv) override {
    return staged([&](StagedWork& work) {
      send_.assign(recv.size(), {});
      receive_.assign(recv.size(), {});
      ConstBytes last, staged_last;  // one block to all is staged once
      for (int r = 0; r < size(); ++r) {
        if (r == rank()) continue;
        const ConstBytes block = outgoing[r];
        if (block.data() != last.data() || block.size() != last.size() || last.empty())
          staged_last = work.outgoing(last = block);
        send_[at(r)] = staged_last;
        receive_[at(r)] = work.incoming(recv[at(r)]);
      }
      return transport_.all_to_all(send_, receive_);
    });
  }

  std::unique_ptr<Communicator> own_;
  Communicator& transport_;
  Memory& memory_;
  BufferStore store_;
  WorkPool<StagedWork> pool_;
  std::vector<ConstBytes> send_;  // of one exchange: kept for their room
  std::vector<Bytes> receive_;
};

}  // namespace

std::unique_ptr<Communicator> stage_through_host(Communicator& transport, Memory& memory) {
  return std::make_unique<StagedCommunicator>(transport, memory);
}

}  // namespace concertina
