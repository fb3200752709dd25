#include "parallel/comm/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <exception>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/model/exchange_order.h"
#include "parallel/comm/mpi_environment.h"
#include "parallel/comm/mpi_work.h"

namespace concertina {
namespace {

/// An owned MPI communicator that returns errors; freed on destruction.
class Handle {
 public:
  explicit Handle(MPI_Comm comm) : comm_(comm) {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  Handle(Handle&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    // Freeing is collective: during stack unwinding, the other ranks may never call it.
    if (comm_ == MPI_COMM_NULL || finalized != 0 || std::uncaught_exceptions() > 0) return;
    if (const int error = MPI_Comm_free(&comm_); error != MPI_SUCCESS)
      log::error("MPI_Comm_free failed: {}", mpi_text(error));
  }
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_;
};

Handle duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  if (const int error = MPI_Comm_dup(comm, &copy); error != MPI_SUCCESS)
    throw_failure("MPI_Comm_dup failed: " + mpi_text(error), "creating a communicator");
  return Handle(copy);
}

/// `shared` is the state shared by the channels of one world.
MpiChannel channel_of(MPI_Comm comm, const MpiChannel& shared) {
  MpiChannel channel = shared;
  int size = 0;
  MPI_Comm_rank(comm, &channel.rank);
  MPI_Comm_size(comm, &size);
  std::vector<int> ranks(size);
  for (int r = 0; r < size; ++r) ranks[r] = r;
  channel.world_ranks.resize(size);
  MPI_Group here = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &here);
  MPI_Comm_group(channel.loss->all(), &world);
  MPI_Group_translate_ranks(here, size, ranks.data(), world, channel.world_ranks.data());
  MPI_Group_free(&here);
  MPI_Group_free(&world);
  return channel;
}

/// Works, pooled by the number of requests that they can store, so that a reused one rarely grows.
struct MpiPools {
  explicit MpiPools(MpiChannel its_channel)
      : channel(std::move(its_channel)), line(channel.lines) {}
  MpiChannel channel;
  MpiLine line;
  WorkPool<MpiWork> single, collective;
  std::size_t most_requests = 0;  // largest number reserved for a collective
};

class MpiCommunicator final : public Communicator {
 public:
  /// Takes ownership of `comm`.
  MpiCommunicator(Handle comm, const MpiChannel& shared)
      : collectives_(duplicate(comm.get())),
        messages_(std::move(comm)),
        pools_(std::make_unique<MpiPools>(channel_of(messages_.get(), shared))) {
    for (const Handle* handle : {&collectives_, &messages_}) shared.loss->add(handle->get());
  }

  ~MpiCommunicator() override {
    for (const Handle* handle : {&collectives_, &messages_})
      pools_->channel.loss->remove(handle->get());
    if (pools_->single.in_use() + pools_->collective.in_use() == 0) return;
    if (std::uncaught_exceptions() == 0)
      log::error("a communicator was destroyed with pending transfers (a bug in concertina)");
    static_cast<void>(pools_.release());  // leaked: unfinished Works still refer to it
  }

  int rank() const override { return pools_->channel.rank; }
  int size() const override { return static_cast<int>(pools_->channel.world_ranks.size()); }

  std::unique_ptr<Communicator> split(int color, int key) override {
    // MPI_Comm_split does not post pending steps, so no rank may enter it while others still wait
    // for this rank's exchanges.
    barrier();
    MPI_Comm part = MPI_COMM_NULL;
    pools_->channel.check(
        MPI_Comm_split(collectives_.get(), color < 0 ? MPI_UNDEFINED : color, key, &part),
        collectives_.get(), "split");
    if (part == MPI_COMM_NULL) return nullptr;
    return std::make_unique<MpiCommunicator>(Handle(part), pools_->channel);
  }

  void reserve(std::size_t messages, std::size_t collectives, std::size_t exchanged) override {
    pools_->most_requests = std::max(pools_->most_requests, exchanged);
    pools_->single.reserve(messages, [&] { return make(pools_->single); });
    pools_->collective.reserve(collectives, [&] { return make(pools_->collective); });
    pools_->line.reserve(collectives);
  }

  void connect(std::span<const int>) override {}

  Work isend(ConstBytes data, int to) override {
    check_rank(to, "isend");
    return start("isend", messages_, [&](MpiWork& work) { work.send(data, to); });
  }
  Work irecv(Bytes data, int from) override {
    check_rank(from, "irecv");
    return start("irecv", messages_, [&](MpiWork& work) { work.receive(data, from); });
  }
  Work broadcast(Bytes data, int root) override {
    check_rank(root, "broadcast");
    return start("broadcast", collectives_, [&](MpiWork& work) { work.broadcast(data, root); });
  }
  void barrier() override {
    start("barrier", collectives_, [](MpiWork& work) { work.barrier(); }).wait();
  }

  void abort(int code) override { abort_job(code); }

 private:
  /// Reserves the maximum number of requests that any operation in its pool needs.
  std::unique_ptr<MpiWork> make(WorkPool<MpiWork>& pool) {
    const std::size_t requests =
        &pool == &pools_->single
            ? 1
            : std::max(pools_->most_requests, 2 * pools_->channel.world_ranks.size());
    return std::make_unique<MpiWork>(pool, pools_->channel, requests);
  }

  /// `begin` posts the messages, or adds them to the queue of exchanges (MpiLine).
  template <class Begin>
  Work start(const char* operation, const Handle& comm, const Begin& begin) {
    WorkPool<MpiWork>& pool = &comm == &messages_ ? pools_->single : pools_->collective;
    MpiWork& state = pool.take([&] { return make(pool); });
    state.begin(operation, comm.get());
    Work work(&state);
    begin(state);
    return work;
  }

  Work start_exchange(const char* operation, std::span<const Send> sends,
                      std::span<const Receive> receives) override {
    return start(operation, collectives_, [&](MpiWork& work) {
      work.plan_exchange(sends, receives);
      line_up(work);
    });
  }

  Work start_all_gather(std::span<const Bytes> blocks) override {
    std::size_t bytes = 0;
    for (const Bytes block : blocks) bytes += block.size();
    if (bytes > std::min<std::size_t>(kDoublingBytes, pools_->channel.chunk_bytes))
      return Communicator::start_all_gather(blocks);
    return start("all_gather", collectives_, [&](MpiWork& work) {
      work.plan_gather(blocks);
      line_up(work);
    });
  }

  void line_up(MpiWork& work) {
    work.join(pools_->line);
    if (!work.done()) pools_->line.push(work);
  }

  Handle collectives_, messages_;
  std::unique_ptr<MpiPools> pools_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_world(MpiOptions options) {
  return make_mpi_world(MPI_COMM_WORLD, std::make_shared<MpiLoss>(), options);
}

std::unique_ptr<Communicator> make_mpi_world(MPI_Comm over, std::shared_ptr<MpiLoss> loss,
                                             MpiOptions options) {
  CONCERTINA_CHECK(options.chunk_bytes > 0 && options.chunk_bytes <= INT_MAX,
                   "MPI messages of {} bytes", options.chunk_bytes);
  Handle all = duplicate(over);
  loss->begin(all.get());
  MpiChannel shared;
  shared.chunk_bytes = options.chunk_bytes;
  shared.lines = std::make_shared<MpiLines>();
  shared.loss = std::move(loss);
  return std::make_unique<MpiCommunicator>(std::move(all), shared);
}

}  // namespace concertina
