// A run takes the memory predicted by `plan`, within 2 %: the growth of the process's resident
// memory from before the engine exists until two steps are done. One process per test.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "tests/integration/training.h"
#include "tests/own_figures.h"

namespace concertina {
namespace {

/// "VmRSS" or "VmHWM" of this process, in bytes.
double resident(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) * 1024;
  return 0;
}

/// A few hundred megabytes, most of them accessed with little arithmetic.
RunConfig large_config() {
  RunConfig config = small_config();
  config.model = {.layers = 2, .width = 512, .heads = 8, .context = 64, .vocab = 20000};
  config.batch = {4, 4};
  return config;
}

/// Libraries allocate memory once that is not the run's: a tiny training does this first.
void warm_up() {
  train_threads(2, with_grid(small_config(), 2, 1, "1f1b"), {0, 1, "", ""});
}

void expect_predicted(int ranks, const RunConfig& config) {
  warm_up();
  const double before = resident("VmRSS");
  std::atomic<std::size_t> predicted = 0;
  with_threads(ranks, config, [&](Trainer& trainer, BatchSource& source) {
    predicted += trainer.memory().total();
    trainer.step(1, source);
    trainer.step(2, source);
    EXPECT_EQ(trainer.peak_bytes(), trainer.memory().total());
    trainer.world().barrier();
  });
  const auto sum = static_cast<double>(predicted.load());
  const double measured = resident("VmHWM") - before;
  std::printf("%d rank(s): predicted %.1f MB, measured %.1f MB (%+.2f %%)\n", ranks, sum * 1e-6,
              measured * 1e-6, 100 * (measured / sum - 1));
  EXPECT_GT(sum, 200e6);
  if (kOptimised) {
    EXPECT_LT(std::abs(measured / sum - 1), 0.02);
  }
}

TEST(Memory, OfOneRankIsAsPredicted) {
  expect_predicted(1, with_grid(large_config(), 1, 1, "1f1b"));
}

TEST(Memory, OfTwoStagesIsAsPredicted) {
  expect_predicted(2, with_grid(large_config(), 2, 1, "1f1b"));
}

TEST(Memory, OfTwoStagesInBf16IsAsPredicted) {
  RunConfig config = with_grid(large_config(), 2, 1, "1f1b");
  config.numerics.compute = "bf16";
  expect_predicted(2, config);
}

TEST(Memory, OfTwoReplicasIsAsPredicted) {
  expect_predicted(2, with_grid(large_config(), 1, 2, "gpipe"));
}

}  // namespace
}  // namespace concertina
