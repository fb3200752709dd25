#include "experiments/train/stragglers.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

namespace concertina {
namespace {

/// A run with steps of `seconds` each, on pipelines of `depth` ranks.
class Steps {
 public:
  Steps(int pipelines, int depth, double seconds, double noise)
      : ranks_(pipelines * depth), depth_(depth), seconds_(seconds), noise_(noise) {
    Layout layout;
    for (int p = 0; p < pipelines; ++p) {
      Pipeline pipeline;
      for (int s = 0; s < depth; ++s)
        pipeline.stages.push_back({.rank = p * depth + s, .first_unit = s, .last_unit = s + 1});
      layout.pipelines.push_back(pipeline);
    }
    std::vector<int> working;
    for (int rank = 0; rank < ranks_; ++rank) working.push_back(rank);
    stragglers_.begin(layout, working, false);
  }

  /// Modifies the recorded step. By default, sends and receives are 1 ms apart.
  std::function<void(std::vector<StepPace>&)> change = [](auto&) {};
  double step_factor = 1;
  std::vector<Straggler> found;

  void steps(int count) {
    for (; count > 0; --count, clock_ += seconds_) {
      std::vector<StepPace> paces(static_cast<std::size_t>(ranks_));
      std::normal_distribution<double> spread(1, noise_);
      for (int rank = 0; rank < ranks_; ++rank) {
        StepPace& pace = paces[static_cast<std::size_t>(rank)];
        const double size = (1 + rank % depth_) * spread(random_);  // stages differ
        pace.compute = {0.01 * size, 0, 0, 0.02 * size};
        pace.sent = {clock_, clock_};
        pace.received = {clock_ + 1e-3 * spread(random_) + 50, clock_ + 1e-3 * spread(random_) - 9};
      }
      change(paces);
      if (const auto one = stragglers_.add(paces, step_factor * seconds_)) found.push_back(*one);
    }
  }

 private:
  int ranks_, depth_;
  double seconds_, noise_, clock_ = 1000;
  Stragglers stragglers_;
  std::mt19937 random_{1};
};

void slow(std::vector<StepPace>& paces, std::size_t rank, double factor) {
  for (double& seconds : paces[rank].compute) seconds *= factor;
}

TEST(Stragglers, ARankTenPercentSlowerIsNamedOnceWithinTwelveSteps) {
  for (const int depth : {2, 4}) {
    Steps run(1, depth, 1, 0.01);
    run.steps(60);
    EXPECT_TRUE(run.found.empty());
    run.change = [](auto& paces) { slow(paces, 1, 1.1); };
    run.steps(12);
    ASSERT_EQ(run.found.size(), 1U) << "depth " << depth;
    EXPECT_EQ(run.found[0].rank, 1);
    EXPECT_EQ(run.found[0].peer, -1);
    EXPECT_NEAR(run.found[0].times, 1.1, 0.03);
    EXPECT_EQ(run.found[0].steps, 10);
    run.steps(300);
    run.change = [](auto&) {};  // it is as fast as before, so no other rank is slower
    run.steps(300);
    EXPECT_EQ(run.found.size(), 1U);
  }
}

TEST(Stragglers, TheActionThatTakesLongerIsNamed) {
  Steps run(1, 3, 1, 0.01);
  run.steps(60);
  run.change = [](auto& paces) { paces[2].compute[3] *= 1.5; };
  run.steps(12);
  ASSERT_EQ(run.found.size(), 1U);
  EXPECT_EQ(run.found[0].action, Kind::B);
  EXPECT_NEAR(run.found[0].times, 1.5, 0.03);
  EXPECT_EQ(to_text(run.found[0]).find("rank 2 is slower than the others: its B takes 1."), 0U);
}

TEST(Stragglers, WhatSlowsAllRanksIsNone) {
  Steps run(2, 2, 1, 0.01);
  run.steps(60);
  run.step_factor = 2;
  run.change = [](auto& paces) {
    for (std::size_t rank = 0; rank < 4; ++rank) slow(paces, rank, 2);
  };
  run.steps(200);
  EXPECT_TRUE(run.found.empty());
}

TEST(Stragglers, ARankThatWasAlwaysSlowerThanItsReplicasIsNamed) {
  Steps run(3, 1, 1, 0.01);
  run.change = [](auto& paces) {
    for (std::size_t rank = 0; rank < 3; ++rank) paces[rank].compute = {1, 0, 0, 2};
    slow(paces, 1, 1.2);
  };
  run.steps(100);
  ASSERT_EQ(run.found.size(), 1U);
  EXPECT_EQ(run.found[0].rank, 1);
  EXPECT_TRUE(run.found[0].replicas);
}

TEST(Stragglers, ALateLinkIsNamedByBothItsEnds) {
  Steps run(1, 4, 1, 0.01);
  run.steps(60);
  run.step_factor = 1.3;
  run.change = [](auto& paces) { paces[2].received[0] += 0.05; };
  run.steps(12);
  ASSERT_EQ(run.found.size(), 1U);
  EXPECT_EQ(run.found[0].rank, 2);
  EXPECT_EQ(run.found[0].peer, 1);
  EXPECT_EQ(run.found[0].action, Kind::RECV_F);
}

/// Short steps next to other programs: bursts that affect a rank for many steps, and much noise.
TEST(Stragglers, NoiseOfABusyMachineIsNone) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> load(4, 1);
    Steps run(2, 2, 0.01, 0.3);
    run.change = [&](auto& paces) {
      for (std::size_t rank = 0; rank < 4; ++rank) {
        if (random() % 30 == 0) load[rank] = random() % 2 == 0 ? 1 : 2;  // shares its core, or not
        slow(paces, rank, load[rank]);
      }
    };
    run.steps(6000);
    EXPECT_TRUE(run.found.empty()) << to_text(run.found[0]) << ", seed " << seed;
  }
}

}  // namespace
}  // namespace concertina
