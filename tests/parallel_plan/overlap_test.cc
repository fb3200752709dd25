// Overlapped pairs: which are valid, how long they take, where their transfers go.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <tuple>

#include "parallel/generate/passes.h"
#include "parallel/plan/plan_index.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

std::optional<Rule> verdict(const std::string& text, const Layout& layout) {
  const Plan plan = parse_plan(text, "text");
  const auto violation = check(plan, layout, limits_of(plan));
  return violation ? std::optional(violation->rule) : std::nullopt;
}

Plan without_overlaps(Plan plan) {
  for (auto& row : plan.rows)
    for (Action& action : row) action.overlapped = false;
  return plan;
}

int pairs(const Plan& plan) {
  int count = 0;
  for (const auto& row : plan.rows)
    for (const Action& action : row) count += action.overlapped;
  return count;
}

/// Returns compute actions of all stages in a random order that is valid for each stage.
Plan random_plan(const Layout& layout) {
  const std::vector<StageInfo> stages = stage_infos(layout);
  std::vector<Action> open;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s)
    for (int m = stages[s].first_microbatch; m < stages[s].last_microbatch; ++m) {
      open.push_back({Kind::F, s, m});
      const bool split = *rc::gen::arbitrary<bool>();
      open.push_back({split ? Kind::I : Kind::B, s, m});
      if (split) open.push_back({Kind::W, s, m});
    }
  Plan plan;
  plan.rows.resize(static_cast<std::size_t>(rank_count(layout)));
  std::set<std::tuple<Kind, int, int>> done;
  const auto has = [&](Kind kind, int stage, int microbatch) {
    return done.contains({kind, stage, microbatch}) ||
           (kind == Kind::B && done.contains({Kind::I, stage, microbatch}));
  };
  while (!open.empty()) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto& [kind, s, m, overlapped] = open[i];
      const bool can = kind == Kind::F ? stages[s].first || has(Kind::F, s - 1, m)
                       : kind == Kind::W
                           ? has(Kind::B, s, m)
                           : has(Kind::F, s, m) && (stages[s].last || has(Kind::B, s + 1, m));
      if (can) ready.push_back(i);
    }
    const std::size_t chosen = *rc::gen::elementOf(ready);
    const Action action = open[chosen];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(chosen));
    plan.rows[stages[action.stage].rank].push_back(action);
    done.insert({action.kind, action.stage, action.microbatch});
  }
  return plan;
}

TEST(Overlap, IsAnFAndABackwardOfAnotherMicrobatch) {
  const Layout one = straight(1, 2), local = over({0, 0}, 2);
  EXPECT_EQ(verdict("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", one), std::nullopt);
  EXPECT_EQ(verdict("0F0,(0F1;0I0)OVERLAP_F_B,0W0,0B1\n", one), std::nullopt);
  EXPECT_EQ(verdict("0F0,1F0,(0F1;1B0)OVERLAP_F_B,(1F1;0B0)OVERLAP_F_B,1B1,0B1\n", local),
            std::nullopt);
  EXPECT_EQ(verdict("0F0,(0F1;0B1)OVERLAP_F_B,0B0\n", one), Rule::overlap);
  EXPECT_EQ(verdict("0F0,0F1,(1F0;1B0)OVERLAP_F_B,0B0,1F1,1B1,0B1\n", local), Rule::overlap);
  EXPECT_EQ(verdict("0F0,0F1,(1F0;1B1)OVERLAP_F_B,0B0,1F1,1B0,0B1\n", local), Rule::dependency);
}

TEST(Overlap, OfAnythingElseIsRefused) {
  const Layout layout = straight(1, 2);
  const Plan plan = parse_plan("0F0,0F1,0I0,0W0,0B1,0REDUCE_GRAD,STEP\n", "text");
  ASSERT_FALSE(check(plan, layout));
  for (std::size_t i = 0; i < plan.rows[0].size(); ++i) {
    Plan marked = plan;
    marked.rows[0][i].overlapped = true;
    const auto violation = check(marked, layout);
    SCOPED_TRACE(i);
    if (i == 1)
      EXPECT_FALSE(violation);
    else
      EXPECT_TRUE(violation && violation->rule == Rule::overlap);
  }
}

TEST(Overlap, WaitsForWhatBothNeed) {
  // Rank 1's B0 follows its F1, which needs the F1 that overlaps with rank 0's B0.
  const Layout layout = straight(2, 2);
  EXPECT_EQ(verdict("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", layout), std::nullopt);
  EXPECT_EQ(verdict("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n", layout), Rule::deadlock);
  EXPECT_EQ(verdict("0F0,0SEND_F0,0RECV_B0,(0F1;0B0)OVERLAP_F_B,0SEND_F1,0RECV_B1,0B1\n"
                    "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
                    layout),
            Rule::deadlock);
  EXPECT_EQ(verdict("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", layout), std::nullopt);
}

TEST(Overlap, StartsOnceBothCanAndEndsTogether) {
  const Layout layout = straight(2, 2);
  const Plan plan = parse_plan("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "text");
  for (const Plan& each : {plan, add_transfers({plan, layout})}) {
    const Timeline timeline = simulate(each, layout, unit_costs(layout));
    const auto at = [&](Kind kind, int stage, int microbatch) {
      const PlanIndex index(each, layout);
      const auto [rank, position] = index.place(index.find(kind, stage, microbatch));
      const Interval& interval = timeline.rows[rank][position];
      return std::pair(interval.start, interval.end);
    };
    // F0 of stage 0 ends at 1, F0 and B0 of stage 1 end at 4; then the pair, then F1 of stage 1.
    EXPECT_EQ(at(Kind::F, 0, 1), std::pair(4.0, 7.0));
    EXPECT_EQ(at(Kind::B, 0, 0), std::pair(4.0, 7.0));
    EXPECT_EQ(at(Kind::F, 1, 1), std::pair(7.0, 8.0));
    EXPECT_EQ(timeline.makespan, 12);
    EXPECT_EQ(timeline.busy, (std::vector<double>{6, 6}));
  }
}

TEST(Overlap, HasItsTransfersAroundIt) {
  const Layout layout = over({0, 1, 1, 0}, 2);
  const Plan plan = parse_plan(
      "0F0,0F1,3F0,(3F1;3B0)OVERLAP_F_B,0B0,3B1,0B1\n"
      "1F0,2F0,1F1,2F1,2B0,1B0,2B1,1B1\n",
      "text");
  EXPECT_EQ(to_text(Plan{{add_transfers({plan, layout}).rows[0]}}),
            "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3RECV_F1,3F0,(3F1;3B0)OVERLAP_F_B,3SEND_B0,"
            "0RECV_B0,0B0,3B1,3SEND_B1,0RECV_B1,0B1\n");
}

/// Expects only marks, an accepted plan, and text that can be parsed.
void expect_sound(const Plan& compute, const Layout& layout) {
  const Plan paired = pair_overlaps({compute, layout}).plan;
  EXPECT_EQ(without_overlaps(paired), compute);
  const Plan plan = add_reduction(add_transfers({paired, layout}));
  const auto violation = check(plan, layout);
  EXPECT_FALSE(violation) << violation->text << "\n" << to_text(plan);
  EXPECT_EQ(pairs(plan), pairs(paired));
  EXPECT_EQ(parse_plan(to_text(plan), "text"), plan);
  // The same buffers: paired or not, both actions hold theirs when the second starts.
  EXPECT_EQ(plan_memory(plan, layout), plan_memory(without_overlaps(plan), layout));
}

TEST(PairOverlaps, IsSoundForEverySchedule) {
  for (const Entry<Schedule>& schedule : schedules()) {
    auto layouts = odd_layouts();
    if (!schedule.value.any_layout) layouts.clear();
    layouts.emplace_back("its own", folded(schedule, 4, 8));
    for (const auto& [name, layout] : layouts) {
      SCOPED_TRACE(fmt::format("{} on {}", schedule.name, name));
      expect_sound(merge_input_weight({expand(layout, schedule.value, schedule.name), layout}),
                   layout);
    }
  }
}

TEST(PairOverlaps, IsSoundForAnyOrder) {
  const auto layouts = odd_layouts();
  EXPECT_TRUE(rc::check([&] {
    const Layout layout = (*rc::gen::elementOf(layouts)).second;
    const Plan compute = random_plan(layout);
    RC_ASSERT(!check(compute, layout, limits_of(compute)));
    const Plan paired = pair_overlaps({compute, layout}).plan;
    const auto violation = check(paired, layout, limits_of(paired));
    if (violation) RC_FAIL(violation->text);
    RC_TAG(pairs(paired) > 0);
  }));
}

TEST(PairOverlaps, TakesPairsThatCostNoWait) {
  const auto paired = [](const std::string& text, const Layout& layout) {
    return to_text(pair_overlaps({parse_plan(text, "text"), layout}).plan);
  };
  // In the steady state of 1f1b, no F waits for its partner longer than necessary.
  EXPECT_EQ(
      paired("0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n", straight(2, 4)),
      "0F0,0F1,0B0,(0F2;0B1)OVERLAP_F_B,(0F3;0B2)OVERLAP_F_B,0B3\n"
      "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
  EXPECT_EQ(paired("0F0,0F1,0B0,0B1\n", straight(1, 2)), "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
}

TEST(MakePlan, OverlapsOnRequest) {
  const Layout layout = straight(2, 8);
  EXPECT_EQ(pairs(make_plan(layout, "1f1b")), 0);
  const Plan plan = make_plan(layout, "1f1b", {}, true);
  EXPECT_GT(pairs(plan), 0);
  EXPECT_FALSE(check(plan, layout));
}

}  // namespace
}  // namespace concertina
