// Training with tensors on emulated GPUs (tests/core/cuda_emulation/nccl): messages through NCCL
// and through pinned memory give the bits of host memory, at any layout.
#include <gtest/gtest.h>

#include <atomic>

#include "core/backend_around.h"
#include "tests/core/cuda_emulation/nccl/gpu.h"
#include "tests/integration/training.h"

namespace concertina {
namespace {

/// The host's kernels, each run after all earlier work in the stream.
class EmulatedBackend final : public BackendAround {
 public:
  EmulatedBackend(std::unique_ptr<Backend> inner, int device)
      : BackendAround(std::move(inner)), gpu_(device) {}
  Memory& memory() override { return gpu_.memory; }

 private:
  void before(Op&) override { gpu_.kernels.synchronize(); }

  test::Gpu gpu_;
};

/// One GPU for each rank, with NCCL, or one for all of them.
TEST(EmulatedGpus, HaveTheBitsOfHostMemory) {
  for (const bool shared : {false, true})
    for (const char* compute : {"fp32", "bf16"}) {
      RunConfig config = small_config();
      config.numerics.compute = compute;
      const Outcome expected = train_threads(1, with_grid(config, 1, 1, "1f1b"), {0, 3, "", ""});
      for (const RunPlace& place : grid_places(config, {{2, 1, "1f1b"},
                                                        {1, 2, "gpipe"},
                                                        {2, 2, "zb-h1"},
                                                        {2, 2, "dualpipe-v"},
                                                        {1, 3, "1f1b"},
                                                        {3, 1, "interleaved-1f1b"}})) {
        std::atomic<int> next = 0;
        expect_same_bits({place}, expected, {0, 3, "", ""}, [&](int threads) {
          return std::make_unique<EmulatedBackend>(make_cpu_backend(threads), shared ? 0 : next++);
        });
      }
    }
}

}  // namespace
}  // namespace concertina
