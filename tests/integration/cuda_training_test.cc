// Trainings on the CUDA backend: on a GPU if linked with CUDA, on the host if linked with its
// emulation. All ranks share GPU 0; their messages pass through host memory.
#include <gtest/gtest.h>

#include <cmath>

#include "core/cuda/backend.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "experiments/run/state_hash.h"
#include "tests/integration/cached_training.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr double kLossTolerance = 1e-3;  // for fp32 on both

std::unique_ptr<Backend> cuda_backend(int) {
  return cuda::make_cuda_backend({});
}

class CudaTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU: " << cuda::status();
  }
};

/// Small enough for emulation: 8 units, 4 microbatches of one sample; with sizes that fp8 supports.
RunConfig config_in(const std::string& compute) {
  RunConfig config = small_config();
  config.model = {.layers = 3, .width = 32, .heads = 2, .context = 16, .vocab = 41};
  config.batch = {4, 4};
  config.numerics.compute = compute;
  return config;
}

bool able(const std::string& compute) {
  try {
    cuda_backend(1)->require(*find_precision(compute));
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST_F(CudaTraining, SameBitsAtEveryLayoutAndSchedule) {
  for (const char* compute : {"fp32", "bf16", "fp8"}) {
    if (!able(compute)) continue;
    RunConfig config = config_in(compute);
    config.model.dropout = compute == std::string("bf16") ? 0.1 : 0;
    config.model.attention_dropout = config.model.dropout;
    const Span span{0, 2, "", ""};
    const Outcome expected = train_threads(1, with_grid(config, 1, 1, "1f1b"), span, cuda_backend);
    expect_same_bits(grid_places(config, {{1, 1, "gpipe"},
                                          {2, 1, "zb-h1"},
                                          {1, 2, "1f1b"},
                                          {2, 2, "1f1b"},
                                          {4, 1, "1f1b"},
                                          {2, 1, "interleaved-1f1b"}}),
                     expected, span, cuda_backend);
  }
}

/// When read, a sample may have another place in another microbatch.
TEST_F(CudaTraining, CachedActivationsLeaveEveryBit) {
  for (const char* compute : {"fp32", "tf32", "bf16", "fp8"}) {
    if (!able(compute)) continue;
    SCOPED_TRACE(compute);
    CachedHost host;
    RunConfig config = cached_config();
    config.numerics.compute = compute;
    config.model.layers = 1;
    config.freeze.units = 3;
    if (compute == std::string("fp8")) config.batch = {12, 12};  // its scales are per microbatch
    const Span span{0, 3, "", ""};                               // an epoch and a half
    const auto train = [&](const RunConfig& one, int ranks) {
      return train_cached(ranks, one, host, span, {}, cuda_backend);
    };
    const CachedResult expected = train(with_grid(config, 1, 1, "1f1b"), 1);
    const RunConfig pipeline = with_grid(config, 2, 1, "1f1b");
    const CachedResult got = train(with_room(pipeline, host, 24, 0), 2);
    EXPECT_EQ(got.outcome, expected.outcome);
    EXPECT_EQ(got.use.memory_hits, kCachedSamples / 2);
  }
}

/// Returns the losses of steps 1, 2, ... of a run on one rank.
std::vector<double> losses(const RunConfig& config, int steps, const MakeBackend& make_backend) {
  std::vector<double> result;
  run_threads(1, [&](Communicator& world) {
    train_rank(world, config, {0, steps, "", ""}, make_backend,
               {.after = [&](double loss) { result.push_back(loss); }});
  });
  return result;
}

TEST_F(CudaTraining, LossCurveIsTheCpuBackends) {
  RunConfig config = with_grid(config_in("fp32"), 1, 1, "1f1b");
  config.model.layers = 1;
  config.batch = {4, 1};
  config.optimizer.lr = 5e-3;
  constexpr int kSteps = 100;
  const std::vector<double> cpu = losses(config, kSteps, cpu_backend);
  const std::vector<double> gpu = losses(config, kSteps, cuda_backend);
  EXPECT_LT(cpu.back(), 0.9 * cpu.front()) << "nothing was learned";
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(gpu[static_cast<std::size_t>(step)], cpu[static_cast<std::size_t>(step)],
                kLossTolerance)
        << "step " << step + 1;
}

/// The losses agree only if the same elements are dropped.
TEST_F(CudaTraining, DropsWhatTheCpuBackendDrops) {
  RunConfig config = with_grid(config_in("fp32"), 1, 1, "1f1b");
  config.model.layers = 1;
  config.model.dropout = config.model.attention_dropout = 0.3;
  const std::vector<double> cpu = losses(config, 5, cpu_backend);
  const std::vector<double> gpu = losses(config, 5, cuda_backend);
  ASSERT_EQ(gpu.size(), cpu.size());
  for (std::size_t step = 0; step < cpu.size(); ++step)
    EXPECT_NEAR(gpu[step], cpu[step], 1e-5) << "step " << step + 1;
}

TEST_F(CudaTraining, ACheckpointGoesOnOnTheOtherDevice) {
  for (const char* compute : {"fp32", "bf16"}) {
    SCOPED_TRACE(compute);
    const TemporaryDirectory directory;
    const RunConfig one = with_grid(config_in(compute), 1, 1, "1f1b");
    const RunConfig two = with_grid(config_in(compute), 2, 1, "1f1b");
    const std::string first = directory.path() + "/first", second = directory.path() + "/second";
    const Outcome saved = train_threads(1, one, {0, 2, "", first}, cpu_backend);
    // The saved state is restored bit for bit, in both directions.
    EXPECT_EQ(train_threads(1, one, {2, 2, first, ""}, cuda_backend).state_sha256,
              saved.state_sha256);
    const Outcome gpu = train_threads(2, two, {2, 4, first, second}, cuda_backend);
    EXPECT_EQ(train_threads(1, one, {4, 4, second, ""}, cpu_backend).state_sha256,
              gpu.state_sha256);
    const Outcome cpu = train_threads(1, one, {2, 4, first, ""}, cpu_backend);
    EXPECT_NE(gpu.state_sha256, saved.state_sha256);
    EXPECT_NEAR(gpu.loss, cpu.loss, compute == std::string("fp32") ? 1e-4 : 3e-2);
  }
}

/// Trains with a limit on graphs per rank, and returns how the passes of each rank were issued, up
/// to each of its steps.
struct Passes {
  Outcome outcome;
  std::vector<std::vector<PassCounts>> counts;
};
Passes train_with(std::size_t graphs, int ranks, const RunConfig& config, const Span& span) {
  Passes result{{}, std::vector<std::vector<PassCounts>>(static_cast<std::size_t>(ranks))};
  run_threads(ranks, [&](Communicator& world) {
    Backend* backend = nullptr;
    const auto make = [&](int) {
      auto made = cuda::make_cuda_backend({.graphs = graphs});
      backend = made.get();
      return made;
    };
    auto& counts = result.counts[static_cast<std::size_t>(world.rank())];
    const Outcome outcome =
        train_rank(world, config, span, make,
                   {.after = [&](double) { counts.push_back(backend->pass_counts()); }});
    if (world.rank() == 0) result.outcome = outcome;
  });
  return result;
}

TEST_F(CudaTraining, GraphsChangeNoBit) {
  const struct {
    const char* compute;
    double dropout;
    int frozen, pp, dp;
    const char* schedule;
  } cases[] = {{"fp32", 0.2, 0, 1, 1, "1f1b"},
               {"bf16", 0, 0, 2, 1, "zb-h1"},
               {"fp8", 0, 0, 1, 2, "gpipe"},
               {"bf16", 0.2, 3, 2, 2, "1f1b"},
               {"fp32", 0, 2, 2, 1, "interleaved-1f1b"}};
  for (const auto& [compute, dropout, frozen, pp, dp, schedule] : cases) {
    if (!able(compute)) continue;
    SCOPED_TRACE(fmt::format("{} pp={} dp={} {}", compute, pp, dp, schedule));
    RunConfig config = with_grid(config_in(compute), pp, dp, schedule);
    config.model.dropout = config.model.attention_dropout = dropout;
    config.freeze.units = frozen;
    config.numerics.leaves = 2;  // gradients that overwrite, and that add
    const Span span{0, 3, "", ""};
    const Passes with = train_with(1024, pp * dp, config, span);
    const Passes without = train_with(0, pp * dp, config, span);
    EXPECT_EQ(with.outcome, without.outcome);
    for (std::size_t rank = 0; rank < with.counts.size(); ++rank) {
      const PassCounts &first = with.counts[rank][0], &last = with.counts[rank][2],
                       &plain = without.counts[rank][2];
      EXPECT_EQ(plain.replayed, 0);
      EXPECT_EQ(last.issued + last.replayed, plain.issued);
      // Every step has the same buffers as the first: the other steps need no new graphs.
      EXPECT_EQ(last.issued, first.issued) << "rank " << rank;
    }
  }
}

TEST_F(CudaTraining, GraphsChangeNoBitOfAResume) {
  const TemporaryDirectory directory;
  RunConfig config = with_grid(config_in("bf16"), 1, 1, "1f1b");
  config.model.dropout = config.model.attention_dropout = 0.2;
  const Outcome whole = train_with(0, 1, config, {0, 4, "", ""}).outcome;
  train_with(1024, 1, config, {0, 2, "", directory.path()});
  config = with_grid(config, 2, 1, "1f1b");
  EXPECT_EQ(train_with(1024, 2, config, {2, 4, directory.path(), ""}).outcome, whole);
}

/// Returns the held-out losses after each step, and the hash of the weights.
std::pair<std::vector<double>, std::string> train_and_evaluate(std::size_t graphs) {
  std::pair<std::vector<double>, std::string> result;
  RunConfig config = with_grid(config_in("fp32"), 1, 1, "1f1b");
  config.model.dropout = config.model.attention_dropout = 0.2;
  run_threads(1, [&](Communicator& world) {
    const PlannedJob run = planned(config, 1);
    const auto backend = cuda::make_cuda_backend({.graphs = graphs});
    Trainer trainer(config, *backend, world);
    trainer.start();
    trainer.initialize();
    SyntheticSource source(config.model.context, config.model.vocab);
    for (int step = 1; step <= 3; ++step) {
      trainer.step(step, source);
      result.first.push_back(summed_loss(trainer, 7, run.job.microbatches, source));
    }
    result.second = state_sha256(trainer);
    EXPECT_EQ(backend->pass_counts().replayed > 0, graphs > 0);
  });
  return result;
}

TEST_F(CudaTraining, GraphsOfTrainingAndEvaluationAreNotMixedUp) {
  EXPECT_EQ(train_and_evaluate(1024), train_and_evaluate(0));
}

}  // namespace
}  // namespace concertina
