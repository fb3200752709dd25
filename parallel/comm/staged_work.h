// A message or collective of a StagedCommunicator: copies to the host, the transport's work, copies
// back. Invariant: what sends starts with the transport when its own copies have ended, and after
// all that was posted before it, on whatever communicator of the rank.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/memory.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/work_pool.h"

namespace concertina {

/// Staging buffers by size, used again.
class StagingStore {
 public:
  explicit StagingStore(Memory& memory) : memory_(memory) {}
  Staging& take(std::size_t bytes);
  /// Its copy has ended.
  void give(Staging& staging);

 private:
  Memory& memory_;
  std::vector<std::unique_ptr<Staging>> all_;
  std::map<std::size_t, std::vector<Staging*>> idle_;
};

class StagedWork;

/// The queue that the communicators of one rank share: waiting for any Work moves all of them, else
/// two ranks that wait for different ones might each keep back what the other needs. That one entry
/// waits for another costs nothing where copies end in their order.
struct StagingDesk {
  explicit StagingDesk(Memory& its_memory) : memory(its_memory), store(its_memory) {}
  /// Starts, in order, what has its copies.
  void progress();

  Memory& memory;
  StagingStore store;
  std::vector<StagedWork*> queue;  // not started, oldest first
  std::size_t works = 0;           // made so far
};

class StagedWork final : public Work::State {
 public:
  /// Makes room for `most` messages.
  StagedWork(WorkPool<StagedWork>& pool, StagingDesk& desk, Communicator& transport,
             std::size_t most);

  void send(ConstBytes data, int to);
  void receive(Bytes data, int from);
  void broadcast(Bytes data, int root);
  void exchange(std::span<const Send> sends, std::span<const Receive> receives);

  bool test() override;
  /// Unfinished: its buffers are not used again, since copies may still be under way.
  void recycle() override;

 private:
  friend struct StagingDesk;
  enum class Kind { send, broadcast, exchange };
  enum class Phase { fetching, moving, delivering, done };
  struct Landing {
    Staging* staging;
    std::byte* to;
  };

  Bytes fetch(ConstBytes data);
  Bytes land(Bytes data);
  void post(Kind kind, int peer);
  bool fetched() const;
  void start();
  bool landed() const;

  WorkPool<StagedWork>& pool_;
  StagingDesk& desk_;
  Communicator& transport_;
  Kind kind_ = Kind::send;
  Phase phase_ = Phase::done;
  int peer_ = 0;
  std::vector<Staging*> fetches_;
  std::vector<Landing> landings_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  Work work_;
};

}  // namespace concertina
