// Freeze policies: the published sequences, each rule by hand, unfreezing, and rejected options.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "parallel/policies/freeze_rules.h"
#include "tests/errors.h"

namespace concertina {
namespace {

FreezeRules rules_of(std::string_view policy, int layers, const OptionValues& set = {},
                     int most = -1) {
  OptionValues options = default_freeze_options();
  for (const auto& [name, value] : set) options.at(name) = value;
  return make_freeze_rules(policy, options, layers, most < 0 ? layers : most);
}

/// What a run measures at the end of each epoch of 10 steps.
using Show = std::function<void(int epoch, FreezeRecord& record)>;

/// Norms decrease from layer to layer, so the last layer always has the smallest.
void falling_norms(int, FreezeRecord& record) {
  for (std::size_t l = static_cast<std::size_t>(record.frozen); l < record.grad_norm.size(); ++l)
    record.grad_norm[l] = 1.0 / static_cast<double>(l + 1);
}

struct Course {
  std::vector<int> frozen;  // during each epoch
  std::vector<FreezeDecision> decisions;
  FreezeState state;
};

/// Returns the frozen layers during each of `epochs` epochs; none are frozen during the first.
Course course_of(const FreezeRules& rules, int epochs, const Show& show = falling_norms) {
  Course course{{0}, {}, {}};
  bool has_reference = false;
  for (int epoch = 1; epoch < epochs; ++epoch) {
    FreezeRecord now{.step = 10 * epoch,
                     .epoch = static_cast<double>(epoch),
                     .loss = 3,
                     .lr = 0.1,
                     .frozen = course.frozen.back()};
    now.grad_norm.resize(static_cast<std::size_t>(rules.layers));
    if (has_reference) now.drift.resize(now.grad_norm.size());
    show(epoch, now);
    const FreezeDecision decision = decide(rules, course.state, now);
    course.state = remember(rules, course.state, now, decision);
    course.frozen.push_back(decision.frozen);
    course.decisions.push_back(decision);
    has_reference = has_reference || decision.take_reference;
  }
  return course;
}

TEST(FreezeAfter, APolicyBeginsAsIfTheRunDid) {
  FreezeRules rules = rules_of("pipetransformer", 12);
  const std::vector<int> at_once = course_of(rules, 6).frozen;
  rules.after = 30;
  const Course late = course_of(rules, 8);
  EXPECT_EQ(std::vector<int>(late.frozen.begin() + 2, late.frozen.end()), at_once);
  EXPECT_EQ(late.decisions[1].reason, "waiting for freeze.after, step 30");
}

TEST(PipeTransformer, FreezesAsTheReleasedCodeAndCarriesTheRealNumberOn) {
  // 12 times 0.3333333, which is 3.9999996, counts as 4.
  for (const double alpha : {1.0 / 3, 0.3333333}) {
    const auto course = [&](const char* rounding) {
      return course_of(rules_of("pipetransformer", 12, {{"alpha", alpha}, {"rounding", rounding}}),
                       10);
    };
    EXPECT_EQ(course("ceil").frozen, (std::vector{0, 4, 7, 9, 10, 11, 11, 12, 12, 12}));
    EXPECT_EQ(course("floor").frozen, (std::vector{0, 4, 6, 8, 9, 10, 10, 11, 11, 11}));
    for (int epoch = 1; epoch < 10; ++epoch)
      EXPECT_NEAR(course("ceil").decisions[static_cast<std::size_t>(epoch) - 1].statistic,
                  12 * (1 - std::pow(2.0 / 3, epoch)), 1e-5);
  }
}

TEST(PipeTransformer, StopsAtTheLayerWithTheSmallestNorm) {
  // Layer 2 has the smallest norm for three epochs, then the last one: L continues from 2.
  const Course course =
      course_of(rules_of("pipetransformer", 12), 6, [](int epoch, FreezeRecord& record) {
        falling_norms(epoch, record);
        if (epoch <= 1) record.grad_norm[1] = 0.01;
      });
  EXPECT_EQ(course.frozen, (std::vector{0, 2, 6, 8, 10, 11}));
  EXPECT_DOUBLE_EQ(course.decisions[0].statistic, 2);
  EXPECT_DOUBLE_EQ(course.decisions[1].statistic, 2 + 10.0 / 3);
}

TEST(PipeTransformer, FreezesNothingFasterThanOnePerDecisionIfTheFirstIsTheCalmest) {
  const Course course =
      course_of(rules_of("pipetransformer", 6, {{"alpha", 0.5}}), 8, [](int, FreezeRecord& record) {
        for (int l = record.frozen; l < 6; ++l)
          record.grad_norm[static_cast<std::size_t>(l)] = 1 + l;
      });
  EXPECT_EQ(course.frozen, (std::vector{0, 1, 2, 3, 4, 5, 6, 6}));
}

TEST(AutoFreeze, FreezesTheLeadingLayersBelowThePercentile) {
  // Changes of 10%, 20%, 50% and 5%; the median is 15%.
  const auto show = [](int epoch, FreezeRecord& record) {
    record.grad_norm = {1, 1, 1, 1};
    if (epoch >= 2) record.grad_norm = {1.1, 0.8, 0.5, 1.05};
  };
  const Course course = course_of(rules_of("autofreeze", 4), 3, show);
  EXPECT_EQ(course.frozen, (std::vector{0, 0, 1}));
  EXPECT_NEAR(course.decisions[1].statistic, 0.15, 1e-12);
  EXPECT_EQ(course_of(rules_of("autofreeze", 4, {{"percentile", 90.0}}), 3, show).frozen,
            (std::vector{0, 0, 2}));
  EXPECT_EQ(course_of(rules_of("autofreeze", 4, {{"percentile", 0.0}}), 3, show).frozen,
            (std::vector{0, 0, 0}));
}

TEST(AutoFreeze, ComparesActiveLayersAlone) {
  // The last layer is never below its own percentile, and equal changes provide no information.
  const Course course =
      course_of(rules_of("autofreeze", 3), 12, [](int epoch, FreezeRecord& record) {
        for (int l = record.frozen; l < 3; ++l)
          record.grad_norm[static_cast<std::size_t>(l)] = epoch % 2 == 0 ? 1 : 2 + l;
      });
  EXPECT_EQ(course.frozen.back(), 2);
  const auto still = [](int, FreezeRecord& record) { record.grad_norm = {1, 2, 3}; };
  EXPECT_EQ(course_of(rules_of("autofreeze", 3), 6, still).frozen.back(), 0);
}

TEST(AutoFreeze, ANormOfZeroThatStaysDoesNotChange) {
  const Course course =
      course_of(rules_of("autofreeze", 3), 3, [](int epoch, FreezeRecord& record) {
        record.grad_norm = {0, 0, epoch == 1 ? 0.0 : 1.0};
      });
  EXPECT_EQ(course.frozen.back(), 0);  // the median of 0, 0 and a change from 0 is 0
  const auto first = [](int epoch, FreezeRecord& record) {
    record.grad_norm = {0, 0.5 * epoch, 1.0 * epoch};
  };
  EXPECT_EQ(course_of(rules_of("autofreeze", 3), 3, first).frozen.back(), 1);
}

/// Layer l moves by 0.1 exp(-epoch / (l + 1)) per epoch; drift is measured from the last snapshot.
struct Converging {
  int since = 0;
  void operator()(int epoch, FreezeRecord& record) const {
    for (std::size_t l = static_cast<std::size_t>(record.frozen); l < record.drift.size(); ++l)
      for (int e = since + 1; e <= epoch; ++e)
        record.drift[l] += 0.1 * std::exp(-e / (static_cast<double>(l) + 1));
  }
};

TEST(Plasticity, FreezesFrontLayersAsTheyConverge) {
  const FreezeRules rules = rules_of(
      "plasticity", 3,
      {{"tolerance", 0.2}, {"window", std::int64_t{1}}, {"reference_every", std::int64_t{60}}});
  const Course course = course_of(rules, 12, Converging{1});
  // The snapshot is from epoch 1, so layer l moved by exp(-(e - 2) / (l + 1)) of its largest change
  // in epoch e: below 0.2 from e = 4, 6, 7 on, one layer after another.
  EXPECT_EQ(course.frozen, (std::vector{0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 3}));
  EXPECT_TRUE(course.decisions[0].take_reference);
  for (std::size_t i = 1; i < course.decisions.size(); ++i)
    EXPECT_FALSE(course.decisions[i].take_reference) << i;
}

TEST(Plasticity, SmoothsOverAWindow) {
  const auto shaking = [](int epoch, FreezeRecord& record) {
    // Moves by 0.1 every epoch, except for one.
    for (double& drift : record.drift) drift = 0.1 * (epoch < 5 ? epoch - 1 : epoch - 2);
  };
  const auto frozen = [&](std::int64_t window) {
    return course_of(rules_of("plasticity", 2,
                              {{"window", window}, {"reference_every", std::int64_t{60}}}),
                     8, shaking)
        .frozen.back();
  };
  EXPECT_EQ(frozen(1), 2);
  EXPECT_EQ(frozen(3), 0);
}

TEST(Plasticity, ANewSnapshotIsNoChange) {
  // Constant speed: the drift falls to one step at each snapshot, but the change stays the same.
  int since = 1;
  const Course course = course_of(
      rules_of(
          "plasticity", 2,
          {{"window", std::int64_t{1}}, {"tolerance", 0.5}, {"reference_every", std::int64_t{3}}}),
      12, [&](int epoch, FreezeRecord& record) {
        for (double& drift : record.drift) drift = epoch - since;
        if ((epoch - 1) % 3 == 0) since = epoch;
      });
  for (std::size_t i = 0; i < course.decisions.size(); ++i)
    EXPECT_EQ(course.decisions[i].take_reference, i % 3 == 0) << i;
  EXPECT_EQ(course.frozen.back(), 0);
}

TEST(Plasticity, RemembersALongWindowInAFewRecords) {
  const FreezeRules rules = rules_of("plasticity", 3, {{"window", std::int64_t{63}}});
  Converging show{1};
  const Course course = course_of(rules, 200, [&](int epoch, FreezeRecord& record) {
    show(epoch, record);
    if ((epoch - 1) % 10 == 0) show.since = epoch;  // freeze.reference_every
  });
  EXPECT_EQ(course.state.history.size(), 63U);
  EXPECT_EQ(course.frozen.back(), 3);
}

TEST(Linear, RisesFromItsStartToItsEnd) {
  FreezeRules rules = rules_of("linear", 8, {{"start", 0.2}, {"end", 0.6}});
  rules.steps = 100;
  EXPECT_EQ(course_of(rules, 11).frozen, (std::vector{0, 0, 0, 2, 4, 6, 8, 8, 8, 8, 8}));
  rules.most = 4;
  EXPECT_EQ(course_of(rules, 11).frozen, (std::vector{0, 0, 0, 1, 2, 3, 4, 4, 4, 4, 4}));
}

TEST(List, FreezesByEpochOrStep) {
  const auto frozen = [](std::vector<std::string> rows) {
    return course_of(rules_of("list", 12, {{"at", std::move(rows)}}), 6).frozen;
  };
  EXPECT_EQ(frozen({"epoch 1: 4", "epoch 3: 7"}), (std::vector{0, 4, 4, 7, 7, 7}));
  EXPECT_EQ(frozen({"epoch 0.5: 1", "epoch 2 : 12"}), (std::vector{0, 1, 12, 12, 12, 12}));
  EXPECT_EQ(frozen({"step 15: 2", "step  20:3"}), (std::vector{0, 0, 3, 3, 3, 3}));
}

TEST(List, SaysWhichRowIsWrong) {
  const auto refused = [](const std::vector<std::string>& rows, std::string_view why) {
    const Error error = input_error([&] { rules_of("list", 4, {{"at", rows}}, 3); });
    EXPECT_EQ(error.where(), "freeze.at");
    expect_has(error.message(), why);
  };
  for (const char* row : {"", "4", "epoch", "epoch 1", "epoch 1:", "epoch 1: x", "epochs 1: 2",
                          "epoch 1: 2 3", "epoch inf: 2", "epoch nan: 2", "epoch 1e999: 2",
                          "epoch 1: 2.5", "step 1; 2", "layer 1: 2", "epoch1: 2"})
    refused({row}, "which is not a valid row");
  refused({}, "needs a table");
  refused({"epoch 0: 1"}, "the first decision is after");
  refused({"epoch -1: 1"}, "the first decision is after");
  refused({"epoch 1: 5"}, "the model has 4 layers");
  refused({"epoch 1: 0"}, "the model has 4 layers");
  refused({"epoch 1: 4"}, "at most 3 layers may be frozen");
  refused({"epoch 1: 2", "step 30: 3"}, "mixes");
  refused({"epoch 2: 1", "epoch 1: 2"}, "must increase");
  refused({"epoch 1: 2", "epoch 2: 2"}, "must increase");
  refused({"epoch 1: 3", "epoch 2: 1"}, "must increase");
}

TEST(FreezeRules, DecideFromMeansOverTheStepsInBetween) {
  FreezeSums sums;
  sums = add_step(sums, 3, 0.1, std::vector{0.0, 9.0, 1.0});
  sums = add_step(sums, 2, 0.2, std::vector{0.0, 16.0, 7.0});
  const FreezeRecord now = record_of(sums, 20, 1.5, 1);
  EXPECT_EQ(now.step, 20);
  EXPECT_EQ(now.epoch, 1.5);
  EXPECT_EQ(now.loss, 2.5);
  EXPECT_EQ(now.lr, 0.2);
  EXPECT_EQ(now.frozen, 1);
  EXPECT_EQ(now.grad_norm, (std::vector{0.0, std::sqrt(12.5), 2.0}));
  sums = add_step(sums, std::nan(""), 0.2, std::vector{1.0, 1.0, 1.0});
  sums.steps = 0;
  EXPECT_THROW(record_of(sums, 20, 1, 0), Error);
  EXPECT_EQ(add_step(sums, 3, 0.1, std::vector{4.0, 0.0, 1.0}),
            add_step({}, 3, 0.1, std::vector{4.0, 0.0, 1.0}));
}

TEST(FreezeRules, AStepThatIsNotFiniteLeavesFiniteSumsAndNoDecision) {
  const double inf = std::numeric_limits<double>::infinity();
  const double most = std::numeric_limits<double>::max();
  const FreezeSums before = add_step({}, 3, 0.1, std::vector{most, 1.0});
  for (const FreezeSums& sums : {add_step(before, std::nan(""), 0.1, std::vector{1.0, 1.0}),
                                 add_step(before, 3, inf, std::vector{1.0, 1.0}),
                                 add_step(before, 3, 0.1, std::vector{1.0, -inf}),
                                 add_step(before, 3, 0.1, std::vector{most, 1.0})}) {
    EXPECT_TRUE(std::isfinite(sums.loss) && std::isfinite(sums.lr));
    for (const double square : sums.squares) EXPECT_TRUE(std::isfinite(square));
    const FreezeRules rules = rules_of("pipetransformer", 2);
    EXPECT_EQ(
        decide(rules, {}, record_of(add_step(sums, 3, 0.1, std::vector{1.0, 1.0}), 9, 1, 0)).frozen,
        0);
  }
  EXPECT_EQ(decide(rules_of("pipetransformer", 2), {}, record_of(before, 9, 1, 0)).frozen, 1);
}

TEST(FreezeRules, NameWhatIsUnknown) {
  const Error error = input_error([] { rules_of("pipetransformr", 4); });
  EXPECT_EQ(error.where(), "freeze.policy");
  EXPECT_TRUE(error.fix().starts_with("pipetransformer (one of: none, list")) << error.fix();
  EXPECT_THROW(rules_of("linear", 4, {{"start", 0.6}, {"end", 0.6}}), Error);
}

TEST(FreezeRules, BoundEveryPolicy) {
  const Course course = course_of(rules_of("pipetransformer", 12, {}, 8), 10);
  EXPECT_EQ(course.frozen, (std::vector{0, 4, 7, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_NE(course.decisions.back().reason.find("at most 8 layers"), std::string::npos);
}

TEST(FreezeRules, KeepWhatIsFrozenEvenAboveTheBound) {
  const FreezeRules rules = rules_of("none", 4, {}, 2);
  FreezeRecord now{.frozen = 3};
  now.grad_norm.resize(4);
  EXPECT_EQ(decide(rules, {}, now).frozen, 3);
}

TEST(FreezeRules, TrainAllLayersAgainWhenTheLossRises) {
  FreezeRules rules = rules_of("pipetransformer", 12);
  const Show show = [](int epoch, FreezeRecord& record) {
    falling_norms(epoch, record);
    record.loss = epoch == 3 ? 3.2 : epoch >= 4 ? 3.4 : 3.0;
  };
  EXPECT_EQ(course_of(rules, 8, show).frozen, (std::vector{0, 4, 7, 9, 10, 11, 11, 12}));
  rules.unfreeze = Unfreeze::loss;
  rules.rise = 0.1;
  // 3.4 is above 3.3; from then on 3.4 is the best, and the policy starts over.
  const Course course = course_of(rules, 8, show);
  EXPECT_EQ(course.frozen, (std::vector{0, 4, 7, 9, 0, 4, 7, 9}));
  EXPECT_EQ(course.state.from_step, 40);
  EXPECT_EQ(course.decisions[3].reason,
            "the loss is 3.4, above 3.3, after a low of 3: all layers train again");
}

TEST(FreezeRules, TrainAllLayersAgainWhenTheScheduleRestarts) {
  FreezeRules rules = rules_of("list", 12, {{"at", std::vector<std::string>{"epoch 1: 4"}}});
  rules.unfreeze = Unfreeze::lr;
  // Warm-up until epoch 3, a decrease, a restart with warm-up in epochs 6 and 7, a decrease.
  const double lr[] = {0, 0.1, 0.2, 0.3, 0.2, 0.1, 0.2, 0.3, 0.2, 0.1};
  const Course course =
      course_of(rules, 10, [&](int epoch, FreezeRecord& record) { record.lr = lr[epoch]; });
  EXPECT_EQ(course.frozen, (std::vector{0, 4, 4, 4, 4, 4, 0, 4, 4, 4}));
  EXPECT_EQ(course.state.from_epoch, 6);
}

TEST(FreezeRules, AskForASnapshotWhenAllLayersTrainAgain) {
  FreezeRules rules = rules_of(
      "plasticity", 3, {{"window", std::int64_t{1}}, {"reference_every", std::int64_t{60}}});
  rules.unfreeze = Unfreeze::loss;
  const Course course = course_of(rules, 9, [](int epoch, FreezeRecord& record) {
    Converging{1}(epoch, record);
    if (epoch == 8) record.loss = 9;
  });
  EXPECT_EQ(course.frozen[7], 3);
  EXPECT_EQ(course.frozen[8], 0);
  EXPECT_TRUE(course.decisions[7].take_reference);
  EXPECT_TRUE(course.state.history.empty());
}

}  // namespace
}  // namespace concertina
