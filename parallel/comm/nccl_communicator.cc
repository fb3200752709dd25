#include "parallel/comm/nccl_communicator.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/arena.h"
#include "core/error.h"
#include "core/index.h"
#include "core/log.h"
#include "parallel/comm/nccl_lane.h"
#include "parallel/comm/nccl_pairs.h"

namespace concertina {
namespace {

/// Number of blocks in a kernel that waits for a neighbor; an H200 runs 132 concurrently.
constexpr int kPairBlocks = 8;

std::vector<int> job_ranks(Communicator& control, int mine) {
  std::vector<int> all(at(control.size()));
  std::vector<Bytes> parts;
  for (int& one : all) parts.push_back(std::as_writable_bytes(std::span(&one, 1)));
  control.all_gather(std::as_bytes(std::span(&mine, 1)), parts).wait();
  return all;
}

/// Byte `i` of the memory for the messages that connect ranks.
Bytes byte(const Arena& scratch, int i) {
  return {static_cast<std::byte*>(scratch.data()) + i, 1};
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclJob> job, std::unique_ptr<Communicator> control,
                   std::unique_ptr<NcclHandle> handle)
      : job_(std::move(job)),
        pools_(std::make_unique<Pools>()),
        control_(std::move(control)),
        members_(job_ranks(*control_, job_->rank())),
        collectives_(std::move(handle)),
        out_(at(size())),
        in_(at(size())) {}
  ~NcclCommunicator() override;

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  std::unique_ptr<Communicator> split(int color, int key) override;
  void reserve(std::size_t messages, std::size_t collectives, std::size_t exchanged) override {
    pools_->most = std::max(pools_->most, exchanged);
    pools_->single.reserve(messages, [this] { return make(pools_->single, 1); });
    pools_->collective.reserve(collectives, [this] { return make(pools_->collective, most()); });
  }
  void connect(std::span<const int> peers) override;

  Work isend(ConstBytes data, int to) override {
    NcclWork& work = begin(pools_->single, "isend", "to", to);
    work.send(data, 1);
    if (to == rank()) return (self_.send(work), Work(&work));
    return posted(work, lane(out_, to));
  }
  Work irecv(Bytes data, int from) override {
    NcclWork& work = begin(pools_->single, "irecv", "from", from);
    work.receive(data, 0);
    if (from == rank()) return (self_.receive(work), Work(&work));
    return posted(work, lane(in_, from));
  }
  Work broadcast(Bytes data, int root) override {
    NcclWork& work = begin(pools_->collective, "broadcast", "from", root);
    work.broadcast(data, root);
    return posted(work, collectives_);
  }
  void barrier() override { control_->barrier(); }
  void abort(int code) override {
    job_->abort();
    control_->abort(code);
  }
  /// Runs a first collective after a split, so that NCCL connects now rather than in a step.
  void open_collectives();

 private:
  using Pool = WorkPool<NcclWork>;
  struct Pools {
    Pool single, collective;
    std::size_t most = 0;  // largest number reserved for an exchange
  };
  using Lanes = std::vector<std::unique_ptr<NcclLane>>;

  std::size_t most() const { return std::max(pools_->most, at(2 * size())); }
  std::unique_ptr<NcclWork> make(Pool& pool, std::size_t most) {
    return std::make_unique<NcclWork>(pool, *job_, most);
  }
  NcclWork& begin(Pool& pool, const char* operation, const char* direction, int peer) {
    if (peer >= 0 || &pool == &pools_->single) check_rank(peer, operation);
    const std::size_t room = &pool == &pools_->single ? 1 : most();
    NcclWork& work = pool.take([&] { return make(pool, room); });
    work.begin(operation, direction, peer < 0 ? -1 : members_[at(peer)]);
    return work;
  }
  static Work posted(NcclWork& state, NcclLane& lane) {
    Work work(&state);
    state.post(lane);
    return work;
  }
  static NcclLane& lane(const Lanes& lanes, int peer) {
    CONCERTINA_CHECK(lanes[at(peer)] != nullptr, "connect() was not called for rank {}", peer);
    return *lanes[at(peer)];
  }
  void copy_own(ConstBytes from, Bytes to) override {
    job_->memory().copy(from.data(), to.data(), from.size());
  }
  Work start_exchange(const char* operation, std::span<const Send> sends,
                      std::span<const Receive> receives) override {
    NcclWork& work = begin(pools_->collective, operation, "", -1);
    for (const auto& [data, from, step] : receives) work.receive(data, from);
    for (const auto& [data, to, step] : sends) work.send(data, to);
    return posted(work, collectives_);
  }
  std::vector<NcclHandle*> handles();
  bool busy() const { return pools_->single.in_use() + pools_->collective.in_use() > 0; }

  std::shared_ptr<NcclJob> job_;
  std::unique_ptr<Pools> pools_;
  std::unique_ptr<Communicator> control_;
  std::vector<int> members_;  // local rank -> job rank
  NcclLane collectives_;
  Lanes out_, in_;  // by peer; null: not connected
  std::vector<Pair> known_pairs_;
  NcclSelf self_;
};

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key) {
  std::unique_ptr<Communicator> control = control_->split(color, key);
  std::unique_ptr<NcclHandle> handle =
      NcclHandle::split(collectives_.handle(), color, control == nullptr ? 0 : control->rank(), 0);
  if (control == nullptr) return nullptr;
  auto part = std::make_unique<NcclCommunicator>(job_, std::move(control), std::move(handle));
  part->open_collectives();
  return part;
}

void NcclCommunicator::open_collectives() {
  const Arena scratch(at(size()), job_->memory());
  std::vector<Bytes> to;
  for (int r = 0; r < size(); ++r) to.push_back(byte(scratch, r));
  all_gather(to[at(rank())], to).wait();
}

/// Uses rounds of disjoint pairs: one split creates a communicator for each pair of a round.
void NcclCommunicator::connect(std::span<const int> peers) {
  const Arena scratch(2, job_->memory());
  for (const auto& round : pair_rounds(gather_wishes(*control_, peers), known_pairs_)) {
    const auto mine = std::find_if(round.begin(), round.end(), [this](const Pair& pair) {
      return pair.front() == rank() || pair.back() == rank();
    });
    for (const bool upwards : {true, false}) {
      const bool in_round = mine != round.end();
      const bool sends = in_round && upwards == (mine->front() == rank());
      auto handle = NcclHandle::split(collectives_.handle(),
                                      in_round ? static_cast<int>(mine - round.begin()) : -1,
                                      sends ? 0 : 1, kPairBlocks);  // the sender is rank 0
      if (!in_round) continue;
      const int peer = mine->front() == rank() ? mine->back() : mine->front();
      (sends ? out_ : in_)[at(peer)] = std::make_unique<NcclLane>(std::move(handle));
      const Bytes data = byte(scratch, sends ? 0 : 1);
      (sends ? isend(data, peer) : irecv(data, peer)).wait();
    }
  }
}

std::vector<NcclHandle*> NcclCommunicator::handles() {
  std::vector<NcclHandle*> all{&collectives_.handle()};
  for (Lanes* lanes : {&out_, &in_})
    for (const auto& lane : *lanes)
      if (lane != nullptr) all.push_back(&lane->handle());
  return all;
}

/// Finalizes all at once: finalizing waits for the peers, whose order may differ.
NcclCommunicator::~NcclCommunicator() {
  if (busy()) {
    if (std::uncaught_exceptions() == 0)
      log::error("a communicator was destroyed with pending transfers (a bug in concertina)");
    pools_.release();  // leaked: unfinished Works still refer to it
  }
  if (std::uncaught_exceptions() > 0) return;
  try {
    for (NcclHandle* handle : handles()) handle->begin_finalize();
    for (NcclHandle* handle : handles())
      job_->wait_for([&] { return handle->settled([] { return "ncclCommFinalize"; }); });
  } catch (const std::exception& error) {
    log::error("error while closing NCCL: {}", error.what());
    for (NcclHandle* handle : handles()) handle->abort();
  }
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& control, Memory& memory) {
  auto job = std::make_shared<NcclJob>(control, dynamic_cast<cuda::DeviceMemory&>(memory));
  auto own = control.split(0, control.rank());
  auto handle = std::make_unique<NcclHandle>(*job, *own);
  return std::make_unique<NcclCommunicator>(std::move(job), std::move(own), std::move(handle));
}

}  // namespace concertina
