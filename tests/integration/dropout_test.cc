// Training with dropout of activations and of attention's probabilities: the same bits with every
// layout, schedule, number of threads and resume, in both precisions, also with frozen units.
#include <gtest/gtest.h>

#include "tests/integration/training.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

const Span kFourSteps{0, 4, "", ""};

RunConfig dropping(const RunConfig& base, double share = 0.1) {
  RunConfig config = base;
  config.model.dropout = config.model.attention_dropout = share;
  return config;
}

Outcome alone(const RunConfig& config) {
  return train_threads(1, with_grid(config, 1, 1, "1f1b"), kFourSteps);
}

const Outcome& dropping_reference() {
  static const Outcome outcome = alone(dropping(small_config()));
  return outcome;
}

TEST(DropoutTraining, AttentionHasAMaskOfItsOwn) {
  RunConfig probabilities = small_config(), activations = small_config();
  probabilities.model.attention_dropout = activations.model.dropout = 0.1;
  const Outcome some = alone(probabilities);
  for (const Outcome& other : {alone(small_config()), alone(activations), dropping_reference()})
    EXPECT_NE(some, other);
  for (const char* compute : {"fp32", "bf16"}) {
    probabilities.numerics.compute = compute;
    RunConfig again = with_grid(probabilities, 2, 2, "zb-h1");
    again.parallel.recompute = {"full"};
    again.run.threads = 2;
    EXPECT_EQ(train_threads(4, again, kFourSteps), alone(probabilities)) << compute;
  }
}

TEST(DropoutTraining, HasTheSameBitsAtEveryScheduleAndLayout) {
  EXPECT_NE(dropping_reference(), alone(small_config()));
  RunConfig config = dropping(small_config());
  expect_same_bits(schedule_places(config), dropping_reference(), kFourSteps);
  for (const bool overlap : {false, true}) {
    config.parallel.overlap = overlap;
    expect_same_bits(uneven_places(config), dropping_reference(), kFourSteps);
  }
}

TEST(DropoutTraining, HasTheSameBitsWithThreadsInBf16AndFrozen) {
  RunConfig base = dropping(small_config());
  base.numerics.compute = "bf16";
  for (const int frozen : {0, 2}) {
    base.freeze.units = frozen;
    const Outcome expected = alone(base);
    for (const int threads : {1, 2}) {
      base.run.threads = threads;
      expect_same_bits(grid_places(base, {{1, 1, "zb-h1"}, {2, 1, "zb-h1"}, {1, 2, "zb-h1"}}),
                       expected, kFourSteps);
    }
  }
}

TEST(DropoutTraining, FollowsFromTheSamplesAndNotFromMicrobatches) {
  const Span first{0, 1, "", ""};
  const auto loss = [&](int microbatches) {
    RunConfig config = with_grid(dropping(small_config(), 0.3), 1, 1, "1f1b");
    config.batch.microbatches = microbatches;
    return train_threads(1, config, first);
  };
  const Outcome one = loss(12);
  for (const int microbatches : {1, 4, 24}) {
    EXPECT_NEAR(loss(microbatches).loss, one.loss, 1e-6) << microbatches;
    EXPECT_NEAR(loss(microbatches).grad_norm / one.grad_norm, 1, 1e-5) << microbatches;
  }
}

TEST(DropoutTraining, ResumesAtAnotherLayoutToTheSameBits) {
  const RunConfig config = dropping(small_config());
  const TemporaryDirectory directory;
  train_threads(4, with_grid(config, 2, 2, "1f1b"), {0, 2, "", directory.path()});
  EXPECT_EQ(train_threads(3, with_grid(config, 1, 3, "gpipe"), {2, 4, directory.path(), ""}),
            dropping_reference());
}

/// After steps with dropout, and at another step: evaluation depends on neither.
TEST(DropoutTraining, EvaluationDropsNothing) {
  const auto held_out = [](double share) {
    double loss = 0;
    const RunConfig config = with_grid(dropping(small_config(), share), 1, 1, "1f1b");
    with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
      loss = summed_loss(trainer, 0, trainer.job().microbatches, source);
      trainer.step(1, source);
      trainer.initialize();  // the initial weights
      EXPECT_EQ(summed_loss(trainer, 0, trainer.job().microbatches, source), loss);
    });
    return loss;
  };
  EXPECT_EQ(held_out(0.3), held_out(0));
}

}  // namespace
}  // namespace concertina
