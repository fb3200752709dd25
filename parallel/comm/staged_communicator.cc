#include "parallel/comm/staged_communicator.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/index.h"
#include "parallel/comm/work_pool.h"

namespace concertina {
namespace {

// A message or collective of a StagedCommunicator: copies to the host, the transport's work, and
// copies back. Invariant: a send starts on the transport when its own copies have completed, and
// after everything posted before it on any communicator of the rank.
/// Staging buffers by size, for reuse.
class StagingStore {
 public:
  explicit StagingStore(Memory& memory) : memory_(memory) {}
  Staging& take(std::size_t bytes);
  /// Returns a buffer whose copy has completed.
  void give(Staging& staging) { idle_[staging.host().size()].push_back(&staging); }

 private:
  Memory& memory_;
  std::vector<std::unique_ptr<Staging>> all_;
  std::map<std::size_t, std::vector<Staging*>> idle_;
};

class StagedWork;

/// Queue shared by the communicators of one rank: waiting for any Work advances all of them.
/// Otherwise two ranks that wait for different Works might each block the other. Starting in order
/// costs nothing, because copies complete in order.
struct StagingDesk {
  explicit StagingDesk(Memory& its_memory) : memory(its_memory), store(its_memory) {}
  /// Starts, in order, each Work whose copies have completed.
  void progress();

  Memory& memory;
  StagingStore store;
  std::vector<StagedWork*> queue;  // not started, oldest first
  std::size_t works = 0;           // total created
};

class StagedWork final : public Work::State {
 public:
  /// Reserves capacity for `most` messages.
  StagedWork(WorkPool<StagedWork>& pool, StagingDesk& desk, Communicator& transport,
             std::size_t most);

  void send(ConstBytes data, int to);
  void receive(Bytes data, int from);
  void broadcast(Bytes data, int root);
  void exchange(std::span<const Send> sends, std::span<const Receive> receives);

  bool test() override;
  /// If unfinished, its buffers are not reused, because copies may still be in progress.
  void recycle() override;
  int waits_for() const override { return work_.waits_for(); }

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

Staging& StagingStore::take(std::size_t bytes) {
  std::vector<Staging*>& idle = idle_[bytes];
  if (idle.empty()) {
    all_.push_back(memory_.make_staging(bytes));
    idle.reserve(all_.size());
    return *all_.back();
  }
  Staging& staging = *idle.back();
  idle.pop_back();
  return staging;
}

void StagingDesk::progress() {
  std::size_t started = 0;
  for (; started < queue.size() && queue[started]->fetched(); ++started) queue[started]->start();
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(started));
}

StagedWork::StagedWork(WorkPool<StagedWork>& pool, StagingDesk& desk, Communicator& transport,
                       std::size_t most)
    : pool_(pool), desk_(desk), transport_(transport) {
  fetches_.reserve(most);
  landings_.reserve(most);
  sends_.reserve(most);
  receives_.reserve(most);
  desk_.queue.reserve(++desk_.works);
}

/// Starts the copy of `data` to the host.
Bytes StagedWork::fetch(ConstBytes data) {
  Staging& staging = *fetches_.emplace_back(&desk_.store.take(data.size()));
  staging.mark();
  staging.fetch(data.data());
  return staging.host();
}

/// Returns where the transport should store what belongs in `data`: kernels issued before this may
/// still read `data`.
Bytes StagedWork::land(Bytes data) {
  Landing& landing = landings_.emplace_back(&desk_.store.take(data.size()), data.data());
  landing.staging->mark();
  return landing.staging->host();
}

void StagedWork::post(Kind kind, int peer) {
  kind_ = kind;
  peer_ = peer;
  phase_ = Phase::fetching;
  desk_.queue.push_back(this);
  desk_.progress();
}

void StagedWork::send(ConstBytes data, int to) {
  fetch(data);
  post(Kind::send, to);
}

/// Posted at once: receives are ordered separately, and the sender may be waiting for this one.
void StagedWork::receive(Bytes data, int from) {
  work_ = transport_.irecv(land(data), from);
  phase_ = Phase::moving;
}

void StagedWork::broadcast(Bytes data, int root) {
  if (root == transport_.rank())
    fetch(data);
  else
    land(data);
  post(Kind::broadcast, root);
}

void StagedWork::exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  ConstBytes last, staged;  // a block sent to several ranks is copied once
  for (const auto& [data, to, step] : sends) {
    if (data.data() != last.data() || data.size() != last.size() || last.empty())
      staged = fetch(last = data);
    sends_.push_back({staged, to, step});
  }
  for (const auto& [data, from, step] : receives) receives_.push_back({land(data), from, step});
  post(Kind::exchange, -1);
}

bool StagedWork::fetched() const {
  return std::all_of(fetches_.begin(), fetches_.end(), [](Staging* one) { return one->idle(); });
}

void StagedWork::start() {
  const Bytes buffer = !fetches_.empty() ? fetches_[0]->host() : Bytes();
  switch (kind_) {
    case Kind::send:
      work_ = transport_.isend(buffer, peer_);
      break;
    case Kind::broadcast:
      work_ =
          transport_.broadcast(landings_.empty() ? buffer : landings_[0].staging->host(), peer_);
      break;
    case Kind::exchange:
      work_ = transport_.exchange(sends_, receives_);
  }
  phase_ = Phase::moving;
}

bool StagedWork::landed() const {
  return std::all_of(landings_.begin(), landings_.end(),
                     [](const Landing& one) { return one.staging->idle(); });
}

bool StagedWork::test() {
  desk_.progress();
  if (phase_ == Phase::moving && work_.test()) {
    for (const Landing& one : landings_) one.staging->deliver(one.to);
    phase_ = Phase::delivering;
  }
  if (phase_ == Phase::delivering && landed()) phase_ = Phase::done;
  return phase_ == Phase::done;
}

void StagedWork::recycle() {
  if (phase_ == Phase::fetching) std::erase(desk_.queue, this);
  work_ = {};
  if (phase_ == Phase::done) {
    for (Staging* one : fetches_) desk_.store.give(*one);
    for (const Landing& one : landings_) desk_.store.give(*one.staging);
  }
  fetches_.clear();
  landings_.clear();
  sends_.clear();
  receives_.clear();
  pool_.give(*this);
}

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
  /// Empties the queue, so that direct calls to the transport keep the call order too. Copies
  /// complete without help.
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
  std::size_t most_ = 0;  // largest number reserved for an exchange
};

}  // namespace

std::unique_ptr<Communicator> stage_through_host(Communicator& transport, Memory& memory) {
  return std::make_unique<StagedCommunicator>(transport, std::make_shared<StagingDesk>(memory));
}

}  // namespace concertina
