// Tensors in memory that host code cannot access, as on a GPU: training, checkpoints and hashes
// have the bits of host memory, at any layout. Reading a tensor without a copy ends the process.
#include <gtest/gtest.h>

#include "core/backend_around.h"
#include "tests/far_backend.h"
#include "tests/integration/training.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

std::unique_ptr<Backend> far_backend(int threads) {
  return make_far_backend(make_cpu_backend(threads));
}

TEST(FarMemory, BitsAreThoseOfHostMemory) {
  for (const char* compute : {"fp32", "bf16"}) {
    RunConfig config = small_config();
    config.numerics.compute = compute;
    const Outcome expected = train_threads(1, with_grid(config, 1, 1, "1f1b"), {0, 3, "", ""});
    expect_same_bits(grid_places(config, {{1, 1, "zb-h1"}, {2, 2, "zb-h1"}, {1, 3, "zb-h1"}}),
                     expected, {0, 3, "", ""}, far_backend);
  }
}

/// Far memory that counts how often host code waits for it.
class WaitedMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes, std::string_view name) override {
    const auto* block = static_cast<std::byte*>(host_memory().allocate(bytes, name));
    blocks_.push_back({block, bytes});
    return const_cast<std::byte*>(block);
  }
  void release(void* block, std::size_t bytes) noexcept override {
    host_memory().release(block, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    waits += !inside(from) || !inside(to);
    host_memory().copy(from, to, bytes);
  }

  int waits = 0;

 private:
  bool inside(const void* data) const {
    return std::ranges::any_of(blocks_, [&](std::span<const std::byte> block) {
      return data >= block.data() && data < block.data() + block.size();
    });
  }
  std::vector<std::span<const std::byte>> blocks_;
};

class WaitedBackend final : public BackendAround {
 public:
  WaitedBackend() : BackendAround(make_cpu_backend(1)) {}
  Memory& memory() override { return memory_; }
  void synchronize() override {
    ++memory_.waits;
    BackendAround::synchronize();
  }
  int take_waits() { return std::exchange(memory_.waits, 0); }

 private:
  WaitedMemory memory_;
};

/// Returns how often the host waits for a device in a step of `microbatches`, and the bits.
std::pair<int, double> waits_of_a_step(int microbatches) {
  RunConfig config = small_config();
  config.batch.microbatches = microbatches;
  config.numerics.leaves = 2;
  std::pair<int, double> result;
  run_threads(1, [&](Communicator& world) {
    WaitedBackend backend;
    Trainer trainer(config, backend, world);
    trainer.start();
    trainer.initialize();
    SyntheticSource source(config.model.context, config.model.vocab);
    trainer.step(1, source);
    backend.take_waits();
    const double loss = trainer.step(2, source).loss;
    result = {backend.take_waits(), loss};
  });
  return result;
}

TEST(FarMemory, HostDoesNotWaitForEachMicrobatch) {
  const auto [few, loss] = waits_of_a_step(2);
  const auto [many, same_loss] = waits_of_a_step(24);
  EXPECT_EQ(few, many);
  EXPECT_NEAR(loss, same_loss, 1e-6);
}

TEST(FarMemory, CheckpointsGoBetweenItAndHostMemory) {
  const TemporaryDirectory directory;
  const RunConfig config = small_config();
  const Outcome expected = train_threads(1, with_grid(config, 1, 1, "1f1b"), {0, 6, "", ""});
  const RunConfig two = with_grid(config, 2, 1, "1f1b"), replicas = with_grid(config, 1, 2, "1f1b");
  const std::string one = directory.path() + "/one", other = directory.path() + "/other";
  train_threads(2, two, {0, 2, "", one}, far_backend);
  train_threads(2, replicas, {2, 4, one, other});
  EXPECT_EQ(train_threads(2, replicas, {4, 6, other, ""}, far_backend), expected);
}

}  // namespace
}  // namespace concertina
