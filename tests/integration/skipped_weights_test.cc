// Training in which units skip their weight gradients alternately: the same bits with every layout,
// skipped weights are unchanged, and nothing else is affected.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/profile_backend.h"
#include "experiments/adopt/freezing.h"
#include "tests/integration/training.h"
#include "tests/planned.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kSkipSteps = 7;

/// The groups for two stages of the small model: all units but those sharing the token table.
std::vector<SkipGroup> two_stages() {
  return {{{1, 2, 3}, 2}, {{4, 5, 6}, 1}};
}

/// Trains steps [1, kSkipSteps] on threads, from step 3 on with these groups.
Outcome train_skipping(int ranks, const RunConfig& config, const std::vector<SkipGroup>& groups,
                       const std::vector<LayoutChange>& changes = {}) {
  return train_threads(ranks, config, {0, kSkipSteps, "", ""}, cpu_backend,
                       {.changes = changes, .before = [&](Trainer& trainer, std::int64_t step) {
                          if (step == 3) trainer.skip(groups);
                        }});
}

TEST(SkippedWeights, HaveTheSameBitsAtEveryLayout) {
  for (const char* compute : {"fp32", "bf16"}) {
    RunConfig config = small_config();
    config.numerics.compute = compute;
    const Outcome one = train_skipping(1, with_grid(config, 1, 1, "1f1b"), two_stages());
    EXPECT_NE(one, train_skipping(1, with_grid(config, 1, 1, "1f1b"), {}));
    for (RunPlace place : grid_places(config, {{2, 1, "1f1b"},
                                               {1, 2, "1f1b"},
                                               {2, 2, "1f1b"},
                                               {2, 1, "zb-v"},
                                               {4, 1, "zb-h1"},
                                               {2, 1, "dualpipe"},
                                               {1, 3, "gpipe"}})) {
      place.config.parallel.overlap = place.config.parallel.pp == 4;
      EXPECT_EQ(train_skipping(place.ranks, place.config, two_stages()), one)
          << compute << " " << place.name;
    }
    RunConfig spare = with_grid(config, 1, 2, "1f1b");
    spare.parallel.spare = 1;
    EXPECT_EQ(train_skipping(3, spare, two_stages()), one);
  }
}

TEST(SkippedWeights, HaveTheSameBitsWhereTheLayoutChanges) {
  const RunConfig config = small_config();
  const auto to = [](std::int64_t step, int pp, int dp, const char* schedule) {
    return LayoutChange{
        step, {.world = 4, .spare = 4 - pp * dp, .pp = pp, .dp = dp, .schedule = schedule}};
  };
  const Outcome one = train_skipping(1, with_grid(config, 1, 1, "1f1b"), two_stages());
  EXPECT_EQ(train_skipping(4, with_grid(config, 4, 1, "1f1b"), two_stages(),
                           {to(3, 2, 2, "zb-h1"), to(4, 1, 4, "1f1b"), to(6, 2, 1, "zb-v")}),
            one);
}

TEST(SkippedWeights, OfNoUnitLeaveEveryBit) {
  const RunConfig config = with_grid(small_config(), 2, 1, "1f1b");
  const Outcome without = train_threads(2, config, {0, kSkipSteps, "", ""});
  EXPECT_EQ(train_skipping(2, config, {}), without);
  EXPECT_EQ(train_skipping(2, config, {{{1, 2, 3}, 0}, {{4, 5, 6}, 0}}), without);
}

/// Returns all bits of a bucket's weights and optimizer state, on a rank that holds them all.
std::vector<float> bits_of(const Trainer& trainer, std::size_t bucket) {
  const View weights = trainer.state().weights()[bucket];
  std::vector<float> bits(weights.f32(), weights.f32() + weights.count);
  for (std::size_t kind = 0; kind < trainer.state().kinds().size(); ++kind) {
    const View part = trainer.state().part(bucket, kind);
    bits.insert(bits.end(), part.f32(), part.f32() + part.count);
  }
  return bits;
}

using BucketBits = std::vector<std::vector<float>>;

BucketBits bits_of(const Trainer& trainer) {
  BucketBits bits;
  for (std::size_t b = 0; b < trainer.assignment().buckets.size(); ++b)
    bits.push_back(bits_of(trainer, b));
  return bits;
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// From the same state, the step computes the same gradients except those that are skipped.
TEST(SkippedWeights, StayAsTheyWereAndNothingElseNotices) {
  RunConfig config = with_grid(small_config(), 1, 1, "zb-h1");
  config.optimizer.clip = 0;  // else the norm of all gradients scales each
  BucketBits before, skipped, whole;
  std::vector<double> squares;
  double grad_norm = 0;
  for (const bool skips : {true, false})
    with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
      for (int step = 1; step <= 2; ++step) trainer.step(step, source);
      before = bits_of(trainer);
      if (skips) trainer.skip(two_stages());
      const StepResult result = trainer.step(3, source);
      (skips ? skipped : whole) = bits_of(trainer);
      if (!skips) return;
      squares = trainer.bucket_squares();
      grad_norm = result.grad_norm;
    });
  SkipTurns turns(job_of(config).model, two_stages(), job_of(config).seed);
  const SkippedBuckets flags = turns.of_step(3);
  int count = 0;
  for (std::size_t b = 0; b < before.size(); ++b) {
    SCOPED_TRACE(fmt::format("bucket {}", b));
    EXPECT_EQ(same_floats(skipped[b], before[b]), flags[b]);
    EXPECT_FALSE(same_floats(whole[b], before[b]));
    EXPECT_EQ(same_floats(skipped[b], whole[b]), !flags[b]);
    EXPECT_EQ(squares[b] == 0, flags[b]);
    count += flags[b] ? 1 : 0;
  }
  EXPECT_EQ(count, 3);
  EXPECT_NEAR(grad_norm, std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0)), 1e-12);
}

TEST(SkippedWeights, TakeTurnsFromUpdateToUpdateWhereStepsAreDoneTogether) {
  const RunConfig config = small_config();
  SkipTurns turns(job_of(config).model, two_stages(), job_of(config).seed);
  with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
    trainer.skip(two_stages());
    trainer.adopt(assign(trainer.job(), {.batches = 3}));
    for (int update = 1; update <= 6; ++update) {
      trainer.step(trainer.done() + 1, source);
      const SkippedBuckets flags = turns.of_step(update);
      for (std::size_t b = 0; b < trainer.bucket_squares().size(); ++b)
        EXPECT_EQ(trainer.bucket_squares()[b] == 0, flags[b]) << update << ", bucket " << b;
    }
    EXPECT_EQ(trainer.done(), 18);
  });
}

TEST(SkippedWeights, RunNoProductOfWeightGradients) {
  RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  const auto inner = make_cpu_backend(1);
  Profile profile;
  const auto backend = make_profile_backend(*inner, profile);
  SyntheticSource source(config.model.context, config.model.vocab);
  run_threads(1, [&](Communicator& world) {
    Trainer trainer(config, *backend, world);
    trainer.start();
    trainer.initialize();
    const auto products = [&](std::int64_t step) {
      profile.reset();
      trainer.step(step, source);
      std::array<std::int64_t, 3> calls{};
      for (const auto& [shape, times] : profile.products) {
        calls[0] += times.forward.calls;
        calls[1] += times.input.calls;
        calls[2] += times.weight.calls;
      }
      return calls;
    };
    const auto all = products(1);
    trainer.skip({{{2}, 1}});  // an MLP
    const auto some = products(2);
    EXPECT_EQ(some[0], all[0]);
    EXPECT_EQ(some[1], all[1]);
    EXPECT_EQ(some[2], all[2] - 2 * config.batch.microbatches);
  });
}

/// The policy plans for the layout in which the run starts; its progress is all that another launch
/// needs.
TEST(SkippedWeights, ArePlannedOnceAndResumeAtAnyLayout) {
  RunConfig config = with_grid(small_config(), 2, 1, "1f1b");
  config.freeze.policy = "weights-only";
  config.freeze.every = 2;
  nlohmann::json progress;
  std::vector<RunEvent> events;
  with_threads(2, config, [&](Trainer& trainer, BatchSource& source) {
    const bool first = trainer.world().rank() == 0;
    Freezing freezing(config, trainer.job());
    freezing.restore({}, trainer, "test");
    for (std::int64_t step = 1; step <= 2; ++step) {
      const StepResult result = trainer.step(step, source);
      Change change;
      freezing.consider({.step = step, .steps = 20, .result = result}, trainer, change);
      EXPECT_FALSE(change.next);
      if (first) events.insert(events.end(), change.events.begin(), change.events.end());
    }
    Freezing later(config, trainer.job());
    EXPECT_THROW(later.restore({}, trainer, "test"), Error) << "after two steps";
    nlohmann::json edited = freezing.progress();
    edited["sums"]["squares"] = {1.0};
    EXPECT_THROW(later.restore(edited, trainer, "test"), Error) << "of another model";
    edited = freezing.progress();
    edited["sums"]["steps"] = -1;
    EXPECT_THROW(later.restore(edited, trainer, "test"), Error);
    if (first) progress = freezing.progress();
  });
  ASSERT_EQ(events.size(), 1U);
  const nlohmann::ordered_json& facts = events[0].facts;
  EXPECT_EQ(facts.at("layers"), 0);
  ASSERT_EQ(facts.at("skipped_by_stage").size(), 2U);
  EXPECT_LT(facts.at("predicted_step_ratio").get<double>(), 0.95);
  EXPECT_LE(facts.at("best_step_ratio").get<double>(),
            facts.at("predicted_step_ratio").get<double>() + 1e-9);
  for (const auto& [pp, dp] : {std::pair{1, 1}, {1, 2}})
    with_threads(pp * dp, with_grid(config, pp, dp, "1f1b"), [&](Trainer& trainer, BatchSource&) {
      Freezing freezing(config, trainer.job());
      freezing.restore(progress, trainer, "test");
      EXPECT_EQ(freezing.progress(), progress);
    });
}

}  // namespace
}  // namespace concertina
