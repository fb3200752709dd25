// Runs the executor with a stage that checks all its arguments: for every registered schedule,
// buffers live long enough, keep their contents, and are as many as the plan predicts.
#include "parallel/runtime/executor.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <tuple>

#include "parallel/generate/passes.h"
#include "tests/parallel_runtime/layouts.h"
#include "tests/parallel_runtime/marking_stage.h"
#include "tests/parallel_runtime/test_rank.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kCheckedMicrobatches = 8, kCheckedLeaves = 4;

/// Splits each B into I now and W at the end of the row: the most that a plan can keep.
Plan weights_at_the_end(Plan plan) {
  for (std::vector<Action>& row : plan.rows) {
    std::vector<Action> weights;
    std::erase_if(row, [](const Action& action) { return action.kind == Kind::W; });
    for (Action& action : row) {
      if (action.kind == Kind::F) continue;
      weights.push_back({Kind::W, action.stage, action.microbatch});
      action.kind = Kind::I;
    }
    row.insert(row.end(), weights.begin(), weights.end());
  }
  return plan;
}

struct ExecutorCase {
  NamedLayout layout;
  Plan plan;
  std::string name;
  Delivery delivery = Delivery::rendezvous;
};

/// One rank of a case.
class CheckedRank {
 public:
  CheckedRank(const ExecutorCase& one, Communicator& world)
      : one_(one),
        world_(world),
        rank_(one.plan, one.layout.layout, marked_job(kCheckedMicrobatches, kCheckedLeaves), world,
              [](const StagePlacement& at, const std::vector<Bucket>& buckets, int frozen) {
                return std::make_unique<MarkingStage>(at, buckets, frozen);
              }) {}

  void step() {
    updates_ = 0;
    rank_.executor().begin_step(1);
    rank_.executor().run(rank_.input(kMarkedLossScale), [this] { ++updates_, expect_gradients(); });
    rank_.executor().end_step();
    EXPECT_EQ(updates_, 1);
    expect_calls();
    expect_interleaving();
    expect_losses(kCheckedMicrobatches);
    expect_times();
    const auto rank = static_cast<std::size_t>(world_.rank());
    EXPECT_EQ(rank_.executor().measured(), plan_memory(one_.plan, one_.layout.layout)[rank]);
  }

  void evaluate(int count) {
    std::map<int, int> seen;
    rank_.executor().evaluate(rank_.input(kMarkedLossScale), count, [&](int m, View logits) {
      ++seen[m];
      EXPECT_EQ(logits.f32()[0], mark('s', last_stage(m).first_unit, m));
    });
    expect_losses(count);
    for (int m = 0; m < kCheckedMicrobatches; ++m)
      EXPECT_EQ(seen[m], m < count && last_stage(m).rank == world_.rank() ? 1 : 0);
    for (int s = 0; s < stage_count(); ++s) {
      if (stage(s) == nullptr) continue;
      for (const auto& [call, times] : stage(s)->take_calls())
        EXPECT_TRUE(call.first == 'F' && times == 1 && call.second < count);
    }
  }

 private:
  int stage_count() const { return one_.layout.layout.stage_count(); }
  MarkingStage* stage(int s) const { return static_cast<MarkingStage*>(rank_.stage(s)); }
  const std::vector<Action>& row() { return rank_.executor().row(); }
  const StagePlacement& last_stage(int microbatch) const {
    const auto& pipelines = one_.layout.layout.pipelines;
    const auto it = std::ranges::find_if(
        pipelines, [&](const Pipeline& p) { return microbatch < p.last_microbatch; });
    return it->stages.back();
  }

  /// Expects that each action of the row was called once on its stage, and nothing else.
  void expect_calls() {
    std::map<std::tuple<int, char, int>, int> planned, called;
    for (const Action& action : row())
      if (is_compute(action.kind))
        planned[{action.stage, to_text(Action{action.kind, 0, 0})[1], action.microbatch}] = 1;
    for (int s = 0; s < stage_count(); ++s)
      if (stage(s) != nullptr)
        for (const auto& [call, times] : stage(s)->take_calls())
          called[{s, call.first, call.second}] = times;
    EXPECT_EQ(called, planned);
  }
  /// Expects that exactly the overlapped pairs of one stage with several units alternated.
  void expect_interleaving() {
    for (int s = 0; s < stage_count(); ++s) {
      if (stage(s) == nullptr) continue;
      bool due = false;
      for (std::size_t i = 0; i + 1 < row().size(); ++i)
        due |= row()[i].overlapped && row()[i].stage == s && row()[i + 1].stage == s;
      const bool several = stage(s)->last_unit() - stage(s)->first_unit() > 1;
      EXPECT_EQ(stage(s)->interleaved() > 0, due && several) << "stage " << s;
    }
  }
  void expect_losses(int count) {
    for (int m = 0; m < kCheckedMicrobatches; ++m)
      EXPECT_EQ(rank_.executor().losses()[m],
                m < count && last_stage(m).rank == world_.rank() ? m + 0.5 : 0.0);
  }
  void expect_times() {
    double last = 0;
    for (std::size_t i = 0; i < row().size(); ++i) {
      const ActionTime& time = rank_.executor().times()[i];
      EXPECT_GE(time.start, last);
      EXPECT_GE(time.end, time.start);
      if (row()[i].overlapped) {
        const ActionTime& partner = rank_.executor().times()[++i];
        EXPECT_EQ(std::pair(partner.start, partner.end), std::pair(time.start, time.end));
        EXPECT_GT(time.busy, 0);
        EXPECT_GT(partner.busy, 0);
        EXPECT_LE(time.busy + partner.busy, time.end - time.start + 1e-9);
      } else {
        EXPECT_EQ(time.busy, time.end - time.start);
      }
      last = time.end;
    }
  }
  void expect_gradients() const {
    for (std::size_t b = 0; b < rank_.buckets().size(); ++b) {
      if (rank_.own_part(b) == nullptr) continue;
      const View sum = rank_.reduced(b);
      const auto uses = std::ssize(rank_.buckets()[b].uses);
      for (std::size_t e = 0; e < sum.count; ++e)
        EXPECT_EQ(sum.f32()[e], static_cast<float>(kCheckedMicrobatches * uses));
    }
  }

  const ExecutorCase& one_;
  Communicator& world_;
  TestRank rank_;
  int updates_ = 0;
};

void expect_runs(const ExecutorCase& one) {
  SCOPED_TRACE(one.name);
  Limits limits;
  limits.leaf_microbatches = kCheckedMicrobatches / kCheckedLeaves;
  const auto violation = check(one.plan, one.layout.layout, limits);
  ASSERT_FALSE(violation.has_value()) << violation->text;
  run_threads(
      one.layout.world,
      [&](Communicator& world) {
        CheckedRank rank(one, world);
        rank.step();
        rank.evaluate(3);
        rank.step();
        rank.evaluate(kCheckedMicrobatches);
        world.barrier();
      },
      one.delivery);
}

/// Runs with whole backwards, split ones, and backwards overlapped with forwards.
void expect_runs_in_every_way(const NamedLayout& at, const Plan& compute, const std::string& name) {
  const auto complete = [&](const Plan& plan) {
    return add_reduction(add_transfers({plan, at.layout}));
  };
  const Plan merged = merge_input_weight({compute, at.layout});
  const Plan& paired = at.layout.frozen_units == 0 ? merged : compute;
  expect_runs({at, complete(merged), name});
  expect_runs(
      {at, complete(weights_at_the_end(compute)), name + ", split backwards", Delivery::eager});
  expect_runs({at, complete(pair_overlaps({paired, at.layout}).plan), name + ", overlapped"});
}

TEST(Executor, RunsEveryScheduleAtEveryLayoutInThePredictedMemoryWithAnyFrozenUnits) {
  for (const Entry<Schedule>& schedule : schedules())
    for (NamedLayout& at :
         layouts_of(schedule.value, kMarkedUnits, kCheckedMicrobatches, kCheckedLeaves)) {
      const Plan compute = expand(at.layout, schedule.value, schedule.name);
      for (const int frozen : {0, 1, 2, 4, 6}) {
        at.layout.frozen_units = frozen;
        expect_runs_in_every_way(at, drop_frozen(compute, at.layout),
                                 fmt::format("{}, {}, {} frozen", at.name, schedule.name, frozen));
        if (HasFatalFailure()) return;
      }
    }
}

}  // namespace
}  // namespace concertina
