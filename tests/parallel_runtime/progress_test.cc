// Transfers progress while a rank computes: what arrives during a unit is taken before the next.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "core/clock.h"
#include "parallel/generate/passes.h"
#include "tests/parallel_runtime/layouts.h"
#include "tests/parallel_runtime/marking_stage.h"
#include "tests/parallel_runtime/test_rank.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kMicrobatches = 4;

/// On stage 1, the first unit of microbatch 0 lasts until stage 0 has sent microbatch 1.
class SlowStart final : public MarkingStage {
 public:
  SlowStart(const StagePlacement& at, const std::vector<Bucket>& buckets, std::atomic<bool>& sent,
            double& second_unit)
      : MarkingStage(at, buckets, 0), sent_(sent), second_unit_(second_unit) {}

  void forward_unit(int unit, const MicrobatchIo& io) override {
    if (first_unit() == 0 && io.microbatch == 2) sent_ = true;
    if (first_unit() > 0 && io.microbatch == 0) {
      while (!sent_) std::this_thread::yield();
      if (unit == first_unit() + 1) second_unit_ = now();
    }
    MarkingStage::forward_unit(unit, io);
  }

 private:
  std::atomic<bool>& sent_;
  double& second_unit_;
};

TEST(Progress, WhatArrivesDuringAUnitIsTakenBeforeTheNext) {
  const Layout layout{{Pipeline{{{0, 0, 3}, {1, 3, kMarkedUnits}}, 0, kMicrobatches}}};
  const Plan plan = make_plan(layout, "gpipe");
  std::atomic<bool> sent = false;
  double second_unit = 0;
  const auto make = [&](const StagePlacement& at, const std::vector<Bucket>& buckets, int) {
    return std::make_unique<SlowStart>(at, buckets, sent, second_unit);
  };
  run_threads(2, [&](Communicator& world) {
    TestRank rank(plan, layout, marked_job(kMicrobatches, kMicrobatches), world, make);
    rank.executor().begin_step(1);
    rank.executor().run(rank.input(kMarkedLossScale), [] {});
    rank.executor().end_step();
    if (world.rank() == 0) return;
    int seen = 0;
    for (const Completion& one : rank.executor().recorder().last().completions) {
      if (!(one.transfer == Action{Kind::RECV_F, 1, 1})) continue;
      ++seen;
      EXPECT_LT(one.time, second_unit);
    }
    EXPECT_EQ(seen, 1);
  });
}

}  // namespace
}  // namespace concertina
