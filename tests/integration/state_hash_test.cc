// Messages between ranks for the hash of a state: no rank may need tables of the whole model. That
// the hash is right at any layout is tested by layout_bits_test.cc.
#include "experiments/run/state_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "tests/integration/training.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

/// Counts the received bytes.
class CountedCommunicator final : public Communicator {
 public:
  explicit CountedCommunicator(Communicator& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return inner_.split(color, key);
  }
  void reserve(std::size_t messages, std::size_t collectives, std::size_t exchanged) override {
    inner_.reserve(messages, collectives, exchanged);
  }
  void connect(std::span<const int> peers) override { inner_.connect(peers); }
  Work isend(ConstBytes data, int to) override { return inner_.isend(data, to); }
  Work irecv(Bytes data, int from) override {
    received += data.size();
    return inner_.irecv(data, from);
  }
  Work broadcast(Bytes data, int root) override {
    received += data.size();
    return inner_.broadcast(data, root);
  }
  void barrier() override { inner_.barrier(); }
  void abort(int code) override {
    inner_.abort(code);
    std::abort();
  }

  std::size_t received = 0;

 private:
  Work start_exchange(const char* /*operation*/, std::span<const Send> sends,
                      std::span<const Receive> receives) override {
    for (const Receive& one : receives) received += one.data.size();
    return inner_.exchange(sends, receives);
  }
  Communicator& inner_;
};

TEST(StateHash, DigestsGoToTheFirstRankAlone) {
  constexpr int kRanks = 4;
  const RunConfig config = with_grid(small_config(), 2, 2, "1f1b");
  std::array<std::size_t, kRanks> received{};
  std::size_t blocks = 0;
  run_threads(kRanks, [&](Communicator& threads) {
    CountedCommunicator world(threads);
    const auto backend = make_cpu_backend(1);
    Trainer trainer(config, *backend, world);
    trainer.start();
    trainer.initialize();
    world.received = 0;
    EXPECT_EQ(state_sha256(trainer).size(), 64U);
    received[static_cast<std::size_t>(world.rank())] = world.received;
    if (world.rank() == 0)
      for (const Bucket& bucket : trainer.assignment().buckets) blocks += block_count(bucket);
  });
  EXPECT_GT(received[0], 32 * blocks);  // tensors that it does not own
  EXPECT_LT(received[0], 64 * blocks + 65);
  for (int rank = 1; rank < kRanks; ++rank)
    EXPECT_EQ(received[static_cast<std::size_t>(rank)], 64U);
}

}  // namespace
}  // namespace concertina
