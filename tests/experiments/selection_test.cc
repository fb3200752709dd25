// Tests which model a run keeps as its best, and when it stops because none is better.
#include "experiments/train/selection.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/datasets/dataset.h"
#include "tests/errors.h"

namespace concertina {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(BestMetric, IsTheFirstOfEqualOnes) {
  BestMetric least(/*minimise=*/true);
  EXPECT_TRUE(least.see(2));
  EXPECT_FALSE(least.see(2));
  EXPECT_FALSE(least.see(3));
  EXPECT_EQ(least.no_better(), 2);
  EXPECT_TRUE(least.see(1.5));
  EXPECT_EQ(least.no_better(), 0);
  BestMetric most(/*minimise=*/false);
  EXPECT_TRUE(most.see(0.5));
  EXPECT_FALSE(most.see(0.25));
  EXPECT_TRUE(most.see(0.75));
  EXPECT_EQ(most.best(), 0.75);
}

TEST(BestMetric, IsNeverWhatIsNotFinite) {
  for (const bool minimise : {true, false}) {
    BestMetric best(minimise);
    for (const double value : {kNaN, HUGE_VAL, -HUGE_VAL}) EXPECT_FALSE(best.see(value));
    EXPECT_TRUE(std::isnan(best.best()));
    EXPECT_TRUE(best.see(7));
    EXPECT_FALSE(best.see(kNaN));
    EXPECT_EQ(best.best(), 7);
  }
}

TEST(BestMetric, IsBetterByTheLeastGainThanTheLastThatWas) {
  BestMetric best(/*minimise=*/true, 0.5);
  EXPECT_TRUE(best.see(3));
  EXPECT_FALSE(best.see(2.75));
  EXPECT_FALSE(best.see(2.5));
  EXPECT_TRUE(best.see(2.25));  // small gains add up
}

/// Runs whose task is to predict tokens.
class SelectionTest : public testing::Test {
 protected:
  SelectionTest() {
    config_.checkpoint.best = "validation_loss";
    config_.run.patience = 2;
    config_.eval.every = 10;
  }
  Selection make() const { return {config_, text_fields(8), dataset_}; }
  static Validation loss(double value) { return {.loss = value, .targets = 1}; }

  RunConfig config_;
  std::shared_ptr<const Dataset> dataset_ =
      open_dataset({.files = {CONCERTINA_README}, .tokens_per_sample = 8});
};

TEST_F(SelectionTest, EndsAfterSoManyEvaluationsWithoutABetterOne) {
  Selection selection = make();
  selection.see(10, loss(3), true);
  EXPECT_TRUE(selection.wants(10));
  EXPECT_EQ(standing(selection, 10), " (best so far)");
  selection.see(20, loss(3), true);
  EXPECT_FALSE(selection.wants(20) || selection.exhausted());
  EXPECT_EQ(standing(selection, 20), " (best: step 10; 1 of 2 evaluations without a better one)");
  selection.see(25, loss(4), false);  // after the last step of a run that is continued later
  EXPECT_FALSE(selection.exhausted());
  selection.see(30, loss(kNaN), true);
  EXPECT_TRUE(selection.exhausted());
  EXPECT_EQ(ending(selection), "2 evaluations without a better validation_loss");
  EXPECT_EQ(selection.best()->step, 10);
}

TEST_F(SelectionTest, GoesOnFromWhatACommitKeeps) {
  config_.run.least_improvement = 0.5;
  const std::vector<double> losses{3, 2.9, kNaN, 2.2, 2.1, 2.0};
  for (std::size_t cut = 0; cut < losses.size(); ++cut) {
    Selection whole = make(), first = make(), second = make();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (i == cut) second.restore(nlohmann::json::parse(first.progress().dump()));
      whole.see(static_cast<std::int64_t>(i), loss(losses[i]), true);
      (i < cut ? first : second).see(static_cast<std::int64_t>(i), loss(losses[i]), true);
    }
    EXPECT_EQ(second.progress(), whole.progress()) << cut;
    EXPECT_EQ(second.exhausted(), whole.exhausted()) << cut;
  }
}

TEST_F(SelectionTest, StartsAnewByAnotherFigureAndAfterALoss) {
  Selection before = make();
  before.see(10, loss(3), true);
  nlohmann::json other = before.progress();
  other["by"] = "accuracy";
  Selection after = make();
  after.restore(other);
  EXPECT_FALSE(after.best().has_value());
  before.see(20, loss(2), true);
  before.lost();  // its commit failed
  EXPECT_EQ(before.best()->step, 10);
  before.see(30, loss(2.5), true);
  EXPECT_TRUE(before.wants(30));
  before.forget();
  EXPECT_FALSE(before.best().has_value());
}

TEST_F(SelectionTest, RefusesWhatNoEvaluationHas) {
  config_.checkpoint.best = "validation_los";
  const Error error = thrown_by([&] { make(); });
  EXPECT_EQ(error.fix(), "\"validation_loss\"; one of: validation_loss");
  config_.checkpoint.best = "";
  config_.run.patience = 0;
  EXPECT_FALSE(make().active());
}

}  // namespace
}  // namespace concertina
