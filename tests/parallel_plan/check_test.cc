// The checker: every way to spoil a valid plan is found, with the right rule and a counter-example.
#include "parallel/plan/check.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "parallel/generate/passes.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

Violation verdict(const Plan& plan, const Layout& layout, const Limits& limits = {}) {
  const std::optional<Violation> violation = check(plan, layout, limits);
  EXPECT_TRUE(violation) << "accepted:\n" << to_text(plan);
  return violation.value_or(Violation{});
}

/// The plan written by hand, checked with what it has.
std::optional<Violation> check_text(const std::string& text, const Layout& layout) {
  const Plan plan = parse_plan(text, "text");
  return check(plan, layout, limits_of(plan));
}

void expect_rule(const std::string& text, const Layout& layout, Rule rule,
                 const std::string& part) {
  const std::optional<Violation> violation = check_text(text, layout);
  ASSERT_TRUE(violation) << "accepted:\n" << text;
  EXPECT_EQ(violation->rule, rule) << violation->text;
  EXPECT_NE(violation->text.find(part), std::string::npos) << violation->text;
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

/// `change(row, position)` for every position of every row of every plan; it says which rules may
/// notice, and none if it leaves the plan as it is.
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

TEST(CheckMutations, DroppedActionsAreMissed) {
  each_mutation([](std::vector<Action>& row, int position) -> std::vector<Rule> {
    row.erase(row.begin() + position);
    return {Rule::cover, Rule::reduction};
  });
}

TEST(CheckMutations, DroppedActionsAreAskedForWhereTheyBelong) {
  for (const auto& [layout, plan] : valid_plans()) {
    for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
      for (std::size_t position = 0; position < plan.rows[rank].size(); ++position) {
        Plan mutant = plan;
        mutant.rows[rank].erase(mutant.rows[rank].begin() + position);
        const Violation violation = verdict(mutant, layout);
        ASSERT_TRUE(violation.gap) << violation.text;
        EXPECT_EQ(violation.gap->action, plan.rows[rank][position]);
        const auto [at, before] = violation.gap->before;
        std::vector<Action>& row = mutant.rows.at(at);
        row.insert(row.begin() + before, violation.gap->action);
        const auto left = check(mutant, layout);
        // The order of messages hangs on other ranks too: one row does not say it.
        EXPECT_TRUE(!left || left->rule == Rule::stream_order || left->rule == Rule::channel_order)
            << violation.text << "\nand then " << left->text;
      }
    }
  }
}

TEST(Check, AsksForAReceiveInFrontOfTheNextOne) {
  expect_rule(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0B0,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
      straight(2, 2), Rule::cover, "0RECV_B0 is missing on rank 0, due before action 4 0RECV_B1");
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

TEST(CheckMutations, WrongRowsAreFound) {
  Plan plan = make_plan(straight(3, 2), "1f1b");
  std::swap(plan.rows[0], plan.rows[1]);
  EXPECT_EQ(verdict(plan, straight(3, 2)).rule, Rule::placement);
  plan.rows.pop_back();
  EXPECT_EQ(verdict(plan, straight(3, 2)).rule, Rule::shape);
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
  EXPECT_NE(advice_of(Rule::stream_order).find("transfers"), std::string_view::npos);
  EXPECT_NE(advice_of(Rule::send_buffer).find("buffer"), std::string_view::npos);
  EXPECT_NE(advice_of(Rule::reduction).find("REDUCE_GRAD"), std::string_view::npos);
}

TEST(Check, AcceptsASplitBackward) {
  EXPECT_FALSE(check_text("0F0,0F1,0I0,0I1,0W0,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n", straight(2, 2)));
}

TEST(Check, RefusesBothForms) {
  expect_rule("0F0,0B0,0W0\n", straight(1, 1), Rule::cover, "also in a B");
  const Violation both = *check_text("0F0,0B0,0W0\n", straight(1, 1));
  EXPECT_EQ(both.places, (std::vector<Place>{{0, 2}, {0, 1}}));  // the W and the B, not the F
  expect_rule("0F0,0W0\n", straight(1, 1), Rule::cover, "0I0 is missing");
  expect_rule("0F0,0W0,0I0\n", straight(1, 1), Rule::dependency, "0W0 comes before");
}

TEST(Check, RefusesTransfersInsideARank) {
  expect_rule("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n", over({0, 0}, 1), Rule::cover,
              "no neighbour stage on another rank");
}

TEST(Check, RefusesCrossedReceives) {
  expect_rule(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
      straight(2, 2), Rule::channel_order,
      "message 0 from rank 0 to rank 1 is sent by rank 0 action 1 0SEND_F0 but received by rank 1 "
      "action 0 1RECV_F1");
}

// Both ranks send first. Posts do not block, so MPI runs it; one stream a rank does not.
TEST(Check, RefusesBothSendFirstOnOneStream) {
  const std::string text =
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
  expect_rule(text, straight(2, 2), Rule::stream_order,
              "with one stream of transfers per rank, these wait in a cycle:\n"
              "the message of rank 0 action 3 0SEND_F1 is queued on rank 1 after that of rank 1 "
              "action 3 1SEND_B0\n"
              "the message of rank 1 action 3 1SEND_B0 is queued on rank 0 after that of rank 0 "
              "action 3 0SEND_F1");
}

TEST(Check, RefusesWaitsInACycle) {
  // Each rank runs the other's successor first.
  expect_rule("0F0,3F1,0F1,3F0,0B0,0B1,3B0,3B1\n1F0,2F1,1F1,2F0,1B0,1B1,2B0,2B1\n",
              over({0, 1, 1, 0}, 2), Rule::dependency, "which it needs");
  const Layout layout = opposite(2, 1);  // stages 0, 1 on ranks 0, 1; 2, 3 on ranks 1, 0
  expect_rule("3F1,0F0,0B0,3B1\n1F0,2F1,2B1,1B0\n", layout, Rule::deadlock,
              "rank 0 action 0 3F1 waits for rank 1 action 1 2F1, which comes after action 0 1F0\n"
              "rank 1 action 0 1F0 waits for rank 0 action 1 0F0, which comes after action 0 3F1");
}

TEST(Check, RefusesToRunOutOfSendBuffers) {
  // Rank 0 takes no gradient before it has sent all forwards, so rank 1 waits with its third.
  const std::string head = "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,";
  const std::string row =
      "1RECV_F0,1F0,1RECV_F1,1F1,1RECV_F2,1F2,1B0,1SEND_B0,1B1,1SEND_B1,1B2,1SEND_B2\n";
  EXPECT_FALSE(check_text(head + "0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n" + row, straight(2, 3)));
  const std::string late =
      "1RECV_F0,1F0,1RECV_F1,1F1,1RECV_F2,1F2,1B0,1B1,1B2,1SEND_B0,1SEND_B1,1SEND_B2\n";
  expect_rule(head + "0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n" + late, straight(2, 3),
              Rule::send_buffer,
              "rank 1 action 8 1B2 waits for the send buffer of rank 1 action 9 1SEND_B0, which "
              "comes after action 8 1B2");
}

TEST(Check, RefusesDescendingGradientsInsideALeaf) {
  const Plan plan = parse_plan("0F0,0F1,0F2,0F3,0B2,0B3,0B1,0B0\n", "text");
  Limits limits = limits_of(plan);
  EXPECT_FALSE(check(plan, straight(1, 4), limits));
  limits.leaf_microbatches = 2;
  const Violation violation = verdict(plan, straight(1, 4), limits);
  EXPECT_EQ(violation.rule, Rule::leaf_order);
  EXPECT_NE(violation.text.find("0B0 adds to leaf 0"), std::string::npos) << violation.text;
}

TEST(Check, RefusesAReductionTooEarlyAndWorkAfterStep) {
  expect_rule("0F0,0REDUCE_GRAD,0B0,STEP\n", straight(1, 1), Rule::reduction,
              "0REDUCE_GRAD comes before rank 0 action 2 0B0, whose gradient it reduces");
  expect_rule("0F0,0B0,STEP,0REDUCE_GRAD\n", straight(1, 1), Rule::reduction, "after STEP");
  expect_rule("0F0,0B0,0REDUCE_GRAD\n", straight(1, 1), Rule::reduction,
              "STEP is missing on rank 0, due at the end");
  expect_rule("0F0,0B0,STEP\n", straight(1, 1), Rule::reduction, "0REDUCE_GRAD is missing");
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
