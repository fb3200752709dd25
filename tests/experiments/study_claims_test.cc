// What a study claims: equivalence and its power, seconds to a target, and the front.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "core/error.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/study_course.h"
#include "experiments/results/study_plot.h"
#include "experiments/results/study_table.h"
#include "io/run_files.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
using Pairs = std::vector<std::pair<double, double>>;

// Student's sleep data, as in study_statistics_test.cc.
const Pairs kSleep = {{0.7, 1.9}, {-1.6, 0.8}, {-0.2, 1.1}, {-1.2, 0.1}, {-0.1, -0.1},
                      {3.4, 4.4}, {3.7, 5.5},  {0.8, 1.6},  {0.0, 4.6},  {2.0, 3.4}};

Pairs swapped(Pairs pairs) {
  for (auto& [first, second] : pairs) std::swap(first, second);
  return pairs;
}

Pairs around(double difference) {
  return {{1, 1 + difference - 0.1}, {2, 2 + difference}, {3, 3 + difference + 0.1}};
}

TEST(Equivalence, IsThatOfStatsmodels) {
  // statsmodels 0.15: ttost_paired(second, first, -margin, margin); scipy: t.interval(0.9, ...).
  for (const auto& [margin, p] : {std::pair(1.0, 0.9149441145512887),
                                  {2.0, 0.1541572356690974},
                                  {2.5, 0.021116860246500745},
                                  {3.0, 0.002655570292658671}}) {
    const Equivalence result = test_equivalence(kSleep, margin, 0.05);
    EXPECT_NEAR(result.p.value(), p, 1e-12);
    EXPECT_NEAR(result.difference - result.half_width.value(), 0.8669947329707163, 1e-12);
    EXPECT_NEAR(result.difference + result.half_width.value(), 2.293005267029284, 1e-12);
    EXPECT_NEAR(result.deviation.value(), 1.229995, 1e-6);  // R: sd of the differences
    EXPECT_EQ(result.pairs, 10);
  }
}

TEST(Equivalence, VerdictsFollowTheIntervalAndTheMargin) {
  using enum EquivalenceVerdict;
  const auto verdict = [](const Pairs& pairs, double margin) {
    const Equivalence result = test_equivalence(pairs, margin, 0.05);
    if (result.p) {
      const double most = std::abs(result.difference) + *result.half_width;
      EXPECT_EQ(result.verdict == equivalent, most < margin) << "p and interval agree";
    }
    return result.verdict;
  };
  EXPECT_EQ(verdict(kSleep, 2.5), equivalent);
  EXPECT_EQ(verdict(kSleep, 2), different) << "p 0.003, but the interval reaches over the margin";
  EXPECT_EQ(verdict(kSleep, 0.5), outside);
  EXPECT_EQ(verdict(around(0.05), 0.1), undecided);
  EXPECT_EQ(verdict({{1, 1}}, 5), too_few);
  EXPECT_FALSE(test_equivalence(Pairs{{1, 1}}, 5, 0.05).p);
  EXPECT_EQ(verdict({{1, 2}, {4, 5}}, 1.5), equivalent) << "without spread";
  EXPECT_EQ(verdict({{1, 2}, {4, 5}}, 1), outside);
}

TEST(Equivalence, IsSymmetricAndAlwaysPassesAnInfiniteMargin) {
  for (const double difference : {-3.0, -0.05, 0.0, 0.2, 40.0}) {
    const Pairs pairs = around(difference);
    const Equivalence there = test_equivalence(pairs, 0.3, 0.05),
                      back = test_equivalence(swapped(pairs), 0.3, 0.05);
    EXPECT_NEAR(there.p.value(), back.p.value(), 1e-12);
    EXPECT_EQ(there.verdict, back.verdict);
    EXPECT_NEAR(there.difference, -back.difference, 1e-14);
    const Equivalence any = test_equivalence(pairs, kNever, 0.05);
    EXPECT_EQ(any.p, 0);
    EXPECT_EQ(any.verdict, EquivalenceVerdict::equivalent);
  }
}

TEST(Equivalence, PowerIsTheExactIntegral) {
  // scipy: integrate.quad over stats.chi of the normal chance;
  // experiments/study/statistics_check.py.
  const auto power = [](int n, double deviation, double margin, double alpha, double difference) {
    return equivalence_power(n, {deviation, margin, alpha, difference});
  };
  EXPECT_NEAR(power(2, 0.004, 0.005, 0.05, 0), 0.12554814914986515, 1e-10);
  EXPECT_NEAR(power(3, 0.004, 0.005, 0.05, 0), 0.21949307198676543, 1e-10);
  EXPECT_NEAR(power(5, 0.004, 0.005, 0.05, 0), 0.527433590177663, 1e-10);
  EXPECT_NEAR(power(5, 0.002, 0.005, 0.05, 0), 0.9950254879230059, 1e-10);
  EXPECT_NEAR(power(10, 0.004, 0.005, 0.05, 0.002), 0.7062835837014384, 1e-10);
  EXPECT_NEAR(power(12, 0.004, 0.005, 0.025, -0.001), 0.879857718370929, 1e-10);
  EXPECT_NEAR(power(200, 1, 0.2, 0.05, 0.05), 0.650405490471645, 1e-10);
  EXPECT_NEAR(power(2, 1, kNever, 0.05, 0), 1, 1e-10);
  EXPECT_NEAR(power(2000, 1, 0.1, 0.05, 0.1), 0.05, 1e-6) << "at the margin: alpha";
  EXPECT_EQ(power(5, 0, 0.1, 0.05, 0.05), 1);
}

TEST(Equivalence, PowerIsThatOfSimulatedPairs) {
  std::mt19937_64 random(1);
  for (const EquivalenceDesign& design :
       {EquivalenceDesign{0.4, 0.5, 0.05, 0}, EquivalenceDesign{0.4, 0.5, 0.05, 0.2}}) {
    constexpr int kPairs = 8, kStudies = 4000;
    std::normal_distribution<double> normal(design.difference, design.deviation);
    int passed = 0;
    for (int study = 0; study < kStudies; ++study) {
      Pairs pairs;
      for (int i = 0; i < kPairs; ++i) pairs.emplace_back(0, normal(random));
      passed += test_equivalence(pairs, design.margin, design.alpha).verdict ==
                EquivalenceVerdict::equivalent;
    }
    const double power = equivalence_power(kPairs, design);
    EXPECT_NEAR(static_cast<double>(passed) / kStudies, power,
                4 * std::sqrt(power * (1 - power) / kStudies));
  }
}

TEST(Equivalence, TheFewestPairsThatHaveThePower) {
  for (const auto& [power, design, pairs] :
       {std::tuple(0.8, EquivalenceDesign{0.004, 0.005, 0.05, 0}, 8),
        {0.9, EquivalenceDesign{0.004, 0.005, 0.05, 0}, 9},
        {0.8, EquivalenceDesign{0.004, 0.005, 0.05, 0.002}, 13},
        {0.8, EquivalenceDesign{0.001, 0.005, 0.05, 0}, 3}})
    EXPECT_EQ(pairs_for_power(power, design), pairs);
  EXPECT_FALSE(pairs_for_power(0.8, {1, 0.5, 0.05, 0.6})) << "the truth is outside";
}

/// A run of ten steps of 2 s on the disk, evaluated after each second one for 5 s.
class StudyClaims : public testing::Test {
 protected:
  /// `start`: of the minute; `accuracies`: of evaluations after steps 2, 4, ...
  void write_run(TrialRecord& trial, const std::vector<double>& accuracies, double step_seconds) {
    trial.directory = directory_.path() + fmt::format("/{}", trial.number);
    std::filesystem::create_directories(trial.directory);
    std::ofstream metrics(run_file(trial.directory, kMetricsFile)),
        events(run_file(trial.directory, kEventsFile)),
        launches(run_file(trial.directory, kLaunchesFile));
    double now = 5;
    const auto time = [&] {
      return fmt::format("2026-12-31T23:{:02}:{:06.3f}Z", static_cast<int>(now) / 60,
                         std::fmod(now, 60));
    };
    launches << fmt::format("{{\"start\": \"{}\"}}\n", time());
    now += 30;  // kernels are made
    for (int step = 1; step <= 2 * std::ssize(accuracies); ++step) {
      now += step_seconds;
      metrics << fmt::format("{{\"step\": {}, \"loss\": 1, \"time\": \"{}\"}}\n", step, time());
      if (step % 2 != 0) continue;
      now += 5;
      events << fmt::format(
          "{{\"step\": {}, \"event\": \"validation\", \"loss\": 1, \"tokens\": 9, \"accuracy\": "
          "{}, "
          "\"seconds\": 5, \"time\": \"{}\"}}\n",
          step, accuracies[static_cast<std::size_t>(step / 2 - 1)], time());
    }
  }

  /// Three arms at three seeds: "fast" is as accurate in a quarter of the time, "rash" is not.
  StudyResults arms() {
    StudyResults results;
    results.name = "arms";
    results.axes = {"arm", "run.seed"};
    const std::pair<const char*, double> kArms[] = {
        {"static", 0}, {"fast", 0.001}, {"rash", -0.02}};
    for (int seed = 1; seed <= 3; ++seed)
      for (const auto& [arm, gain] : kArms) {
        TrialRecord& trial = results.trials.emplace_back();
        trial.number = static_cast<int>(results.trials.size());
        trial.settings = {{"arm", arm}, {"run.seed", std::to_string(seed)}};
        trial.state = TrialState::done;
        const double last = 0.9 + 0.01 * seed + gain * (1 + 0.1 * seed);
        const double step = std::string(arm) == "static" ? 4 + 0.1 * seed : 1 + 0.01 * seed;
        trial.figures = {{"validation_accuracy", last}, {"train_s", 9 * step}};
        write_run(trial, {0.5, 0.7, 0.8, 0.9, last}, step);
      }
    results.claim = EquivalenceClaim{"validation_accuracy", 0.005, 0.05, {"arm=static"}};
    return results;
  }

  TemporaryDirectory directory_;
};

TEST_F(StudyClaims, TrainingSecondsLeaveOutEvaluationsAndTheFirstStep) {
  TrialRecord trial;
  trial.number = 1;
  write_run(trial, {0.5, 0.7, 0.8, 0.9, 0.95}, 2);
  RunLog course = read_log(trial.directory);
  EXPECT_EQ(course.launches.size(), 1u);
  const StepCurve seconds = training_seconds(course);
  ASSERT_EQ(seconds.step.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_NEAR(seconds.value[i], 2.0 * static_cast<double>(i), 1e-6);
  EXPECT_NEAR(seconds_to(course, "validation_accuracy", 0.8).value(), 10, 1e-6) << "step 6";
  EXPECT_NEAR(seconds_to(course, "validation_accuracy", 0.81).value(), 14, 1e-6);
  EXPECT_EQ(seconds_to(course, "validation_accuracy", 0.96), kNever);
  EXPECT_NEAR(seconds_to(course, "validation_loss", 1).value(), 2, 1e-6) << "lower is better";
  // A second launch, a day later, does steps 9 and 10 once more: its first one is not counted.
  for (const char* second : {"02", "05"}) {
    course.metrics.push_back(course.metrics[8]);
    course.metrics.back().time = fmt::format("2027-01-01T20:00:{}.500Z", second);
  }
  course.metrics.back().step = 10;
  course.launches.push_back("2027-01-01T19:59:00.000Z");
  const StepCurve again = training_seconds(course);
  ASSERT_EQ(again.step.size(), 10u);
  EXPECT_NEAR(again.value[8], 14, 1e-6);
  EXPECT_NEAR(again.value[9], 17, 1e-6);
  course.metrics[3].time.clear();
  EXPECT_TRUE(training_seconds(course).step.empty()) << "a log without times";
}

TEST_F(StudyClaims, SecondsToATargetAreAColumnAndNeverIsNoMean) {
  StudyResults results = arms();
  const std::vector<std::string> columns = add_times_to(
      results,
      {"validation_accuracy=0.9", "validation_accuracy=baseline",
       "validation_accuracy=baseline-0.05", "validation_accuracy=baseline+0"},
      {"arm=static"});
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_EQ(name_of_figure(columns[0]).title, "Time to validation accuracy of 90% (s)");
  EXPECT_EQ(name_of_figure(columns[1]).title, "Time to validation accuracy of baseline (s)");
  EXPECT_EQ(name_of_figure(columns[2]).title, "Time to validation accuracy of baseline -5% (s)");
  for (const TrialRecord& trial : results.trials)
    EXPECT_EQ(cell_of(trial, columns[3]), cell_of(trial, columns[1]));
  TableOptions options;
  options.metrics = columns;
  const StudyTable table = make_table(results, options);
  EXPECT_LT(table.rows[0].cells[2].summary.mean, table.rows[0].cells[1].summary.mean);
  EXPECT_NEAR(table.rows[0].cells[0].summary.mean, 7 * 4.2, 1e-6)
      << "step 8, 7 steps after the first";
  EXPECT_NEAR(table.rows[1].cells[1].summary.mean, 9 * 1.02, 1e-6) << "each seed's own target";
  EXPECT_EQ(table.rows[2].cells[1].never, 3);
  EXPECT_EQ(table.rows[2].cells[1].summary.n, 0);
  EXPECT_FALSE(table.rows[2].cells[1].difference);
  const std::string text = table_text(table, TableFormat::text, TableCells::full);
  EXPECT_NE(text.find("never in 3 of 3"), std::string::npos) << text;
  EXPECT_NE(text.find("never in trials 3,6,9: its group has no mean"), std::string::npos) << text;
  // One seed that never comes is enough: the others alone would flatter the group.
  results.trials[1].figures[columns[1]] = kNever;
  const StudyTable one = make_table(results, options);
  EXPECT_EQ(one.rows[1].cells[1].never, 1);
  EXPECT_EQ(one.rows[1].cells[1].summary.n, 0);
  EXPECT_FALSE(one.rows[1].cells[1].p);
  EXPECT_EQ(to_json(one)["groups"][1]["metrics"][columns[1]]["never"], 1);
  const auto refused = [&](const std::string& target, const std::vector<std::string>& baseline) {
    EXPECT_THROW(add_times_to(results, {target}, baseline), Error) << target;
  };
  refused("validation_accuracy", {});
  refused("validation_accuracy=much", {});
  refused("loss=1", {});
  refused("validation_acuracy=0.5", {});
  refused("validation_accuracy=baseline", {});
  refused("validation_accuracy=baseline-0.1", {});
  for (const char* sum : {"baseline0.1", "baseline*2", "baseline-", "baseline-x", "+0.1"})
    refused(fmt::format("validation_accuracy={}", sum), {"arm=static"});
}

TEST_F(StudyClaims, TheFilesClaimIsTestedWithoutBeingAsked) {
  const StudyTable table = make_table(arms(), {});
  EXPECT_EQ(table.baseline, "static");
  EXPECT_TRUE(table.claim_in_file);
  const std::string text = table_text(table, TableFormat::markdown, TableCells::mean_sd);
  for (const char* part :
       {"| Group | Pairs | Δ Validation accuracy (%) | 90% interval | p | Verdict |",
        "| fast | 3 | +0.12 | +0.10 to +0.14 | \\< 0.001 | equivalent |",
        "| not equivalent (worse) |", "within ±0.5 %",
        "no correction for 2 comparisons; margin, alpha and baseline stand in the study's file"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  TableOptions options;
  options.claim = EquivalenceClaim{"validation_accuracy", 0.5};
  options.baseline = {"arm=rash"};
  const StudyTable other = make_table(arms(), options);
  EXPECT_FALSE(other.claim_in_file);
  EXPECT_EQ(to_json(other)["groups"][0]["metrics"]["validation_accuracy"]["equivalence"]["verdict"],
            "equivalent");
  options.baseline = {"none"};
  EXPECT_THROW(make_table(arms(), options), Error) << "nothing to be equivalent to";
  options = {};
  options.where = {"run.seed=1"};
  EXPECT_NE(table_text(make_table(arms(), options), TableFormat::text, TableCells::full)
                .find("takes two pairs at least"),
            std::string::npos);
  StudyResults open = arms();
  for (TrialRecord& trial : open.trials) trial.state = TrialState::open, trial.figures.clear();
  EXPECT_EQ(make_table(open, {}).rows.size(), 3u) << "no trial has the metric yet";
}

TEST_F(StudyClaims, AFrontHasGainsAndLossesOfPairs) {
  TableOptions options;
  options.front = {"train_s", "validation_accuracy"};
  const StudyTable table = make_table(arms(), options);
  const std::vector<FrontPoint>& points = table.front->points;
  ASSERT_EQ(points.size(), 3u);
  EXPECT_TRUE(points[0].baseline);
  EXPECT_EQ(points[0].gain, 1);
  EXPECT_FALSE(points[0].on_front) << "fast is faster and as accurate";
  EXPECT_NEAR(points[1].gain.value(), std::cbrt(4.1 / 1.01 * 4.2 / 1.02 * 4.3 / 1.03), 1e-12);
  EXPECT_LT(points[1].gain_low.value(), points[1].gain.value());
  EXPECT_TRUE(points[1].on_front);
  EXPECT_FALSE(points[2].on_front);
  EXPECT_NEAR(points[2].change.value(), -0.024, 1e-12);
  EXPECT_EQ(table.front->change_confidence, 0.9);
  EXPECT_EQ(table.front->loss_begins, 2u);
  // Without a claim the loss begins where the interval is on the worse side of zero.
  StudyResults results = arms();
  results.claim.reset();
  options.baseline = {"arm=static"};
  EXPECT_EQ(make_table(results, options).front->loss_begins, 2u);
  // In the order of the table, whatever that is.
  options.sort = "train_s";
  const StudyTable sorted = make_table(arms(), options);
  EXPECT_EQ(sorted.front->points.back().name, "static");
  EXPECT_EQ(to_json(*sorted.front)["loss_begins"], "rash");
  options.front = {"train_s"};
  EXPECT_THROW(make_table(arms(), options), Error);
  options.front = {"train_s", "validation_accuracy"};
  options.baseline = {"none"};
  EXPECT_THROW(make_table(arms(), options), Error);
}

TEST_F(StudyClaims, AFrontIsDrawnWithItsIntervalsAndMargin) {
  PlotOptions options;
  options.kind = PlotKind::front;
  const StudyPlot plot = plot_study(arms(), options);
  const auto& scatter = std::get<Scatter>(plot.chart.marks);
  ASSERT_EQ(scatter.series[0].points.size(), 3u);
  EXPECT_EQ(scatter.levels, (std::vector<double>{0, -0.5, 0.5}));
  const NamedPoint& fast = scatter.series[0].points[1];
  EXPECT_NEAR(fast.y, 0.12, 1e-9);
  EXPECT_LT(fast.x_low.value(), fast.x);
  EXPECT_GT(fast.y_high.value(), fast.y);
  EXPECT_EQ(to_json(plot)["series"][1]["y_low"], *fast.y_low);
  const std::string with = svg(plot.chart);
  Chart bare = plot.chart;
  for (NamedPoint& point : std::get<Scatter>(bare.marks).series[0].points)
    point = {point.x, point.y, point.name};
  EXPECT_NE(with, svg(bare)) << "the bars are drawn";
}

}  // namespace
}  // namespace concertina
