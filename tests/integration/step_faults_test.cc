// Wrong numbers in a step: which faults are detected, by which ranks, what is reported, and that a
// repaired run has the bits of one without a fault, at any layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/failpoint.h"
#include "experiments/run/state_hash.h"
#include "tests/far_backend.h"
#include "tests/integration/training.h"
#include "tests/io/io_test.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr std::int64_t kSteps = 4, kFaulty = 3;

class StepFaults : public testing::Test {
 protected:
  void TearDown() override { arm_failpoints(""); }
};

struct Found {
  StepFault fault;                 // of the first working rank
  std::vector<std::string> names;  // of tensors that differ from the record, on any rank
  int faults = 0;                  // steps with a fault
  std::string state_sha256;
};

/// Trains kSteps steps and checks each. A repairable fault is repaired and the step repeated;
/// otherwise, with `passes`, the step is skipped; otherwise, training ends.
Found train(int ranks, const RunConfig& config, bool passes = false,
            const MakeBackend& make_backend = cpu_backend) {
  std::vector<Found> all(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& world) {
    Found& found = all[static_cast<std::size_t>(world.rank())];
    with_trainer(
        world, config,
        [&](Trainer& trainer, BatchSource& source) {
          for (std::int64_t step = 1; step <= kSteps; ++step) {
            trainer.engine().state_check().record_next();
            const std::int64_t done = trainer.done(), ahead = trainer.ahead();
            StepResult result = trainer.try_step(step, source);
            if (result.fault == StepFault::Kind::none) continue;
            ++found.faults;
            EXPECT_EQ(std::pair(trainer.done(), trainer.ahead()), std::pair(done, ahead));
            found.fault = trainer.engine().fault();
            if (result.fault == StepFault::Kind::state)
              found.names = trainer.engine().state_check().changed();
            if (found.fault.repairable) {
              const std::vector<std::string> wrong = trainer.engine().repair();
              EXPECT_TRUE(found.names.empty() || found.names == wrong);
              found.names = wrong;
              result = trainer.try_step(step, source);
              EXPECT_EQ(result.fault, StepFault::Kind::none);
            } else if (passes) {
              trainer.pass_over(step);
              EXPECT_EQ(std::pair(trainer.done(), trainer.ahead()), std::pair(step, ahead + 1));
            } else {
              return;
            }
          }
          found.state_sha256 = state_sha256(trainer);
        },
        make_backend);
  });
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank].fault.kind, all[0].fault.kind);
    EXPECT_EQ(all[rank].fault.where, all[0].fault.where);
    EXPECT_EQ(all[rank].fault.ranks, all[0].fault.ranks);
    EXPECT_EQ(all[rank].fault.repairable, all[0].fault.repairable);
    EXPECT_EQ(all[rank].state_sha256, all[0].state_sha256);
    all[0].names.insert(all[0].names.end(), all[rank].names.begin(), all[rank].names.end());
  }
  return all[0];
}

RunConfig grid(int pp, int dp) {
  return with_grid(small_config(), pp, dp, "1f1b");
}

std::string undisturbed() {
  static const std::string hash = train_threads(1, grid(1, 1), {0, kSteps, "", ""}).state_sha256;
  return hash;
}

TEST_F(StepFaults, ALookChangesNothing) {
  for (const auto& [pp, dp] : {std::pair{1, 1}, {2, 2}}) {
    const Found found = train(pp * dp, grid(pp, dp));
    EXPECT_EQ(found.faults, 0);
    EXPECT_EQ(found.state_sha256, undisturbed());
  }
}

TEST_F(StepFaults, AWeightThatFlipsInAReplicaIsRepaired) {
  for (const auto& [pp, dp] : {std::pair{1, 2}, {2, 2}, {1, 3}})
    for (const int rank : {0, pp * dp - 1}) {
      SCOPED_TRACE(fmt::format("pp={} dp={} rank {}", pp, dp, rank));
      arm_failpoints(fmt::format("weight-bit@{}:rank={}", kFaulty, rank));
      const Found found = train(pp * dp, grid(pp, dp));
      EXPECT_EQ(found.faults, 1);
      EXPECT_EQ(found.fault.kind, StepFault::Kind::state);
      EXPECT_EQ(found.fault.ranks, std::vector{rank});
      EXPECT_TRUE(found.fault.known && found.fault.repairable);
      EXPECT_EQ(found.names.size(), 1U);
      EXPECT_EQ(found.state_sha256, undisturbed());
    }
}

TEST_F(StepFaults, FarMemoryIsRepairedToo) {
  arm_failpoints(fmt::format("weight-bit@{}:rank=1", kFaulty));
  const Found found = train(2, grid(1, 2), false, [](int threads) {
    return make_far_backend(make_cpu_backend(threads));
  });
  EXPECT_EQ(found.faults, 1);
  EXPECT_EQ(found.state_sha256, undisturbed());
}

TEST_F(StepFaults, OfThreeReplicasTheOneThatDiffersIsWrong) {
  arm_failpoints(fmt::format("weight-bit-after@{}:rank=1", kFaulty - 1));
  const Found found = train(3, grid(1, 3));
  EXPECT_EQ(found.fault.ranks, std::vector{1});
  EXPECT_TRUE(found.fault.known && found.fault.repairable);
  EXPECT_EQ(found.names.size(), 1U);
  EXPECT_EQ(found.state_sha256, undisturbed());
}

TEST_F(StepFaults, OfTwoReplicasThatDifferNobodyKnowsTheWrongOne) {
  arm_failpoints(fmt::format("weight-bit-after@{}:rank=1", kFaulty - 1));
  const Found found = train(2, grid(1, 2));
  EXPECT_EQ(found.fault.kind, StepFault::Kind::state);
  EXPECT_EQ(found.fault.ranks, (std::vector{0, 1}));
  EXPECT_FALSE(found.fault.known || found.fault.repairable);
}

TEST_F(StepFaults, WhatNoReplicaHasIsFoundAndNotRepaired) {
  for (const auto& [fault, dp] :
       {std::pair{"weight-bit", 1}, {"optimizer-bit", 1}, {"optimizer-bit", 2}}) {
    SCOPED_TRACE(fmt::format("{} dp={}", fault, dp));
    arm_failpoints(fmt::format("{}@{}:rank={}", fault, kFaulty, dp - 1));
    const Found found = train(dp, grid(1, dp));
    EXPECT_EQ(found.fault.ranks, std::vector{dp - 1});
    EXPECT_TRUE(found.fault.known);
    EXPECT_FALSE(found.fault.repairable);
    ASSERT_EQ(found.names.size(), 1U);
    EXPECT_EQ(found.names[0].starts_with("m of "), std::string_view(fault) == "optimizer-bit");
  }
}

/// If a step is not checked, the update spreads the flip to all replicas, and it cannot be detected
/// afterwards.
TEST_F(StepFaults, AFlipThatNobodyLooksAtIsEverybodys) {
  arm_failpoints("weight-bit@1:rank=0");  // nothing is recorded before the first update
  const Found found = train(2, grid(1, 2));
  EXPECT_EQ(found.faults, 0);
  EXPECT_NE(found.state_sha256, undisturbed());
}

TEST_F(StepFaults, AStepThatIsPassedOverLeavesTheSameBitsAtEveryLayout) {
  const auto nan = [](std::int64_t step) {
    arm_failpoints(fmt::format("activation-nan@{}:microbatch=5,unit=3", step));
  };
  for (const std::int64_t step : {std::int64_t{1}, kFaulty}) {
    nan(step);
    const Found alone = train(1, grid(1, 1), true);
    EXPECT_EQ(alone.faults, 1);
    EXPECT_EQ(alone.fault.what, fmt::format("the loss of step {} is NaN", step));
    EXPECT_EQ(alone.fault.where, "rank 0, microbatch 5");
    EXPECT_NE(alone.state_sha256, undisturbed());
    for (const auto& [pp, dp] : {std::pair{2, 1}, {1, 2}, {2, 2}}) {
      nan(step);
      const Found found = train(pp * dp, grid(pp, dp), true);
      EXPECT_EQ(found.fault.what, alone.fault.what);
      EXPECT_EQ(found.state_sha256, alone.state_sha256) << pp << " " << dp;
    }
  }
}

TEST_F(StepFaults, AStepThatIsNotTriedButTrainedThrows) {
  arm_failpoints("activation-nan@1:microbatch=0");
  with_rank_alone(grid(1, 1), [](Trainer& trainer, BatchSource& source) {
    EXPECT_ERROR(trainer.step(1, source), "the loss of step 1 is NaN");
  });
}

}  // namespace
}  // namespace concertina
