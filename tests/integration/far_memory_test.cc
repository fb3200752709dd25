// Tensors in memory that host code cannot touch, as on a GPU: training, checkpoints and hashes are
// the bits of host memory, at any layout. Whoever reads a tensor without a copy ends the process.
#include <gtest/gtest.h>

#include "tests/far_backend.h"
#include "tests/integration/training.h"
#include "tests/temporary_directory.h"

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
    for (const auto& [pp, dp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 3}}) {
      SCOPED_TRACE(fmt::format("{} pp={} dp={}", compute, pp, dp));
      EXPECT_EQ(
          train_threads(pp * dp, with_grid(config, pp, dp, "zb-h1"), {0, 3, "", ""}, far_backend),
          expected);
    }
  }
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
