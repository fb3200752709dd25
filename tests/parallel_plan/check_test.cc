// The checker finds every way to break a valid plan, with the right rule and a counterexample.
#include "parallel/plan/check.h"

#include <gtest/gtest.h>

#include <set>

#include "parallel/generate/passes.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

Violation verdict(const Plan& plan, const Layout& layout, const Limits& limits = {}) {
  const std::optional<Violation> violation = check(plan, layout, limits);
  EXPECT_TRUE(violation) << "accepted:\n" << to_text(plan);
  return violation.value_or(Violation{});
}

std::vector<std::pair<Layout, Plan>> valid_plans() {
  std::vector<std::pair<Layout, Plan>> plans;
  for (const std::string_view name : {"gpipe", "1f1b"}) {
    for (const Layout& layout : {straight(2, 3), straight(4, 6), two_and_one(), opposite(3, 2)})
      plans.emplace_back(layout, make_plan(layout, name));
    plans.emplace_back(over({0, 1, 1, 0}, 3), make_plan(over({0, 1, 1, 0}, 3), name));
  }
  return plans;
}

/// Calls `change(row, position)` for every position of every row of every plan; it returns the
/// rules that may report the change, or none if the plan is unchanged.
template <class Change>
void each_mutation(Change change) {
  for (const auto& [layout, plan] : valid_plans()) {
    for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
      for (std::size_t position = 0; position < plan.rows[rank].size(); ++position) {
        Plan mutant = plan;
        const std::vector<Rule> rules = change(mutant.rows[rank], static_cast<int>(position));
        if (rules.empty()) continue;
        const Violation violation = verdict(mutant, layout);
        EXPECT_NE(std::find(rules.begin(), rules.end(), violation.rule), rules.end())
            << violation.text;
        EXPECT_FALSE(violation.text.empty());
      }
    }
  }
}

TEST(CheckMutations, DroppedActionsAreAskedForWhereTheyBelong) {
  for (const auto& [layout, plan] : valid_plans()) {
    for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
      for (std::size_t position = 0; position < plan.rows[rank].size(); ++position) {
        Plan mutant = plan;
        mutant.rows[rank].erase(mutant.rows[rank].begin() + position);
        const Violation violation = verdict(mutant, layout);
        EXPECT_TRUE(violation.rule == Rule::cover || violation.rule == Rule::reduction);
        ASSERT_TRUE(violation.gap) << violation.text;
        EXPECT_EQ(violation.gap->action, plan.rows[rank][position]);
        const auto [at, before] = violation.gap->before;
        std::vector<Action>& row = mutant.rows.at(at);
        row.insert(row.begin() + before, violation.gap->action);
        const auto left = check(mutant, layout);
        // The order of messages also depends on other ranks, so fixing one row may not be enough.
        EXPECT_TRUE(!left || left->rule == Rule::stream_order || left->rule == Rule::channel_order)
            << violation.text << "\nand then " << left->text;
      }
    }
  }
}

TEST(CheckMutations, DuplicatesAreFound) {
  each_mutation([](std::vector<Action>& row, int position) -> std::vector<Rule> {
    row.insert(row.begin() + position, row[position]);
    return {Rule::cover, Rule::dependency, Rule::reduction};
  });
}

TEST(CheckMutations, AnotherStageIsFound) {
  each_mutation([](std::vector<Action>& row, int position) -> std::vector<Rule> {
    if (row[position].kind == Kind::STEP) return {};
    row[position].stage += 1;
    return {Rule::placement, Rule::range, Rule::cover};
  });
}

TEST(CheckMutations, AnotherMicrobatchIsFound) {
  each_mutation([](std::vector<Action>& row, int position) -> std::vector<Rule> {
    row[position].microbatch += 1;
    return {Rule::range, Rule::cover};
  });
}

TEST(CheckMutations, AnActionBeforeWhatItNeedsIsFound) {
  each_mutation([](std::vector<Action>& row, int position) -> std::vector<Rule> {
    const Kind kind = row[position].kind;
    if (kind == Kind::F || is_transfer(kind)) {
      if (!is_send(kind)) return {};
    }
    const Action moved = row[position];
    row.erase(row.begin() + position);
    row.insert(row.begin(), moved);
    if (position == 0) return {};
    const bool tail = kind == Kind::REDUCE || kind == Kind::STEP;
    return {tail ? Rule::reduction : Rule::dependency};
  });
}

TEST(CheckMutations, SwappedReceivesFromOneRankAreFound) {
  each_mutation([](std::vector<Action>& row, int position) -> std::vector<Rule> {
    const Action first = row[position];
    if (first.kind != Kind::RECV_F && first.kind != Kind::RECV_B) return {};
    for (std::size_t other = position + 1; other < row.size(); ++other) {
      if (row[other].kind != first.kind || row[other].stage != first.stage) continue;
      std::swap(row[position], row[other]);
      return {Rule::channel_order, Rule::dependency};
    }
    return {};
  });
}

TEST(Check, AdvisesOnTheRuleThatIsBroken) {
  std::set<std::string_view> names, advice;
  int rules = 0;
  for (Rule rule = Rule::shape; rule <= Rule::send_buffer;
       rule = static_cast<Rule>(static_cast<int>(rule) + 1), ++rules) {
    names.insert(name_of(rule));
    advice.insert(advice_of(rule));
  }
  EXPECT_EQ(std::ssize(names), rules);
  EXPECT_EQ(std::ssize(advice), rules);
  expect_has(advice_of(Rule::stream_order), "transfers");
  expect_has(advice_of(Rule::send_buffer), "buffer");
  expect_has(advice_of(Rule::reduction), "REDUCE_GRAD");
}

TEST(Check, PointsAtBothFormsOfABackward) {
  const Plan plan = parse_plan("0F0,0B0,0W0\n", "text");
  const Violation both = check(plan, straight(1, 1), limits_of(plan)).value();
  EXPECT_EQ(both.places, (std::vector<Place>{{0, 2}, {0, 1}}));  // the W and the B, not the F
}

TEST(Check, IsStrictAboutWhatIsDue) {
  const Layout layout = straight(2, 2);
  const Plan bare = make_plan(layout, "1f1b", {.transfers = false, .reduction = false});
  EXPECT_EQ(verdict(bare, layout).rule, Rule::cover);
  EXPECT_EQ(verdict(make_plan(layout, "1f1b"), layout, {.transfers = false}).rule, Rule::range);
  EXPECT_EQ(verdict(make_plan(layout, "1f1b"), layout, {.reduction = false}).rule, Rule::range);
}

}  // namespace
}  // namespace concertina
