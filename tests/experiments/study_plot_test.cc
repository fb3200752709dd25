#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/error.h"
#include "experiments/results/study_plot.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

/// Two schedules at depths 1, 2 and 4, two seeds; the rate is 100 a stage, 10 more for zb-v and
/// one for the second seed.
StudyResults depths() {
  StudyResults results;
  results.name = "depths";
  results.axes = {"parallel.schedule", "parallel.pp", "run.seed"};
  for (const char* schedule : {"1f1b", "zb-v"})
    for (const int pp : {1, 2, 4})
      for (const int seed : {1, 2}) {
        TrialRecord& trial = results.trials.emplace_back();
        trial.number = static_cast<int>(results.trials.size());
        trial.settings = {{"parallel.schedule", schedule},
                          {"parallel.pp", std::to_string(pp)},
                          {"run.seed", std::to_string(seed)}};
        trial.state = TrialState::done;
        trial.figures = {{"tokens_per_s", 100.0 * pp + (schedule[0] == 'z' ? 10 : 0) + seed},
                         {"peak_bytes", (8 << 20) / pp}};
      }
  return results;
}

PlotOptions rate() {
  PlotOptions options;
  options.y = "tokens_per_s";
  return options;
}

std::string plot_refusal(const StudyResults& results, const PlotOptions& options) {
  try {
    plot_study(results, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error.message() + " @ " + error.where() + " @ " + error.fix();
  }
  return "accepted";
}

TEST(StudyPlot, ANumericAxisMakesLinesWithSpreadOverSeeds) {
  const StudyPlot plot = plot_study(depths(), rate());
  EXPECT_EQ(plot.kind, PlotKind::lines);
  EXPECT_EQ(plot.chart.x.label, "pipeline stages");
  EXPECT_EQ(plot.chart.x.scale, Scale::log2);
  EXPECT_EQ(plot.chart.y.unit, "tokens/s");
  const auto& lines = std::get<Lines>(plot.chart.marks).series;
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].name, "zb-v");
  EXPECT_EQ(lines[1].x, (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(lines[1].y, (std::vector<double>{111.5, 211.5, 411.5}));
  EXPECT_NEAR(lines[1].high[0] - 111.5, std::sqrt(0.5), 1e-12);  // sd of two values 1 apart
  PlotOptions options = rate();
  options.spread = PlotSpread::interval;
  const StudyPlot interval = plot_study(depths(), options);
  EXPECT_NEAR(std::get<Lines>(interval.chart.marks).series[1].high[0] - 111.5, 12.7062 / 2, 1e-4);
  options.spread = PlotSpread::none;
  EXPECT_TRUE(std::get<Lines>(plot_study(depths(), options).chart.marks).series[0].low.empty());
}

TEST(StudyPlot, ATextAxisMakesBarsOrAHeatMap) {
  PlotOptions options = rate();
  options.x = "parallel.schedule";
  StudyPlot plot = plot_study(depths(), options);
  EXPECT_EQ(plot.kind, PlotKind::bars);
  const Bars& bars = std::get<Bars>(plot.chart.marks);
  EXPECT_EQ(bars.groups, (std::vector<std::string>{"1f1b", "zb-v"}));
  ASSERT_EQ(bars.series.size(), 3u);
  EXPECT_EQ(bars.series[2].name, "pp=4");
  EXPECT_EQ(bars.series[2].values, (std::vector<double>{401.5, 411.5}));
  EXPECT_EQ(bars.series[2].points, (std::vector<std::vector<double>>{{401, 402}, {411, 412}}));
  options.kind = PlotKind::heatmap;
  plot = plot_study(depths(), options);
  const HeatMap& map = std::get<HeatMap>(plot.chart.marks);
  EXPECT_EQ(map.rows, (std::vector<std::string>{"1", "2", "4"}));
  EXPECT_EQ(map.values[2], (std::vector<double>{401.5, 411.5}));
  EXPECT_FALSE(map.dark_is_low);
  // More bars than can be told apart.
  StudyResults results = depths();
  for (int i = 0; i < 40; ++i) {
    results.trials.push_back(results.trials[0]);
    results.trials.back().number = 100 + i;
    results.trials.back().settings[0].second = "s" + std::to_string(i);
  }
  options.kind = PlotKind::automatic;
  EXPECT_EQ(plot_study(results, options).kind, PlotKind::heatmap);
}

TEST(StudyPlot, AFigureMakesAParetoFront) {
  PlotOptions options = rate();
  options.x = "peak_bytes";
  options.group = {"parallel.schedule"};
  const StudyPlot plot = plot_study(depths(), options);
  EXPECT_EQ(plot.kind, PlotKind::pareto);
  const Scatter& scatter = std::get<Scatter>(plot.chart.marks);
  EXPECT_EQ(scatter.x, BetterEnd::lower);
  EXPECT_EQ(scatter.y, BetterEnd::higher);
  ASSERT_EQ(scatter.series.size(), 2u);
  EXPECT_EQ(scatter.series[1].points[2].name, "zb-v pp=4");
  EXPECT_EQ(scatter.series[1].points[2].x, 2);  // MiB
  EXPECT_EQ(scatter.series[1].points[2].y, 411.5);
  PlotOptions front;
  front.kind = PlotKind::pareto;
  EXPECT_EQ(std::get<Scatter>(plot_study(depths(), front).chart.marks).series[0].points.size(), 6u);
}

TEST(StudyPlot, StepsMakeCurvesFromTheLogsOfRuns) {
  const TemporaryDirectory scratch;
  StudyResults results = depths();
  for (TrialRecord& trial : results.trials) {
    trial.directory = scratch.path() + "/" + std::to_string(trial.number);
    std::filesystem::create_directories(trial.directory);
    std::ofstream log(trial.directory + "/metrics.jsonl");
    for (int step = 1; step <= 3; ++step)
      log << "{\"step\":" << step << ",\"loss\":" << 10 * trial.number + step << "}\n";
  }
  PlotOptions options;
  options.x = "step";
  options.y = "loss";
  options.where = {"parallel.pp=2"};
  const StudyPlot plot = plot_study(results, options);
  const auto& lines = std::get<Lines>(plot.chart.marks).series;
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].name, "1f1b");  // trials 3 and 4
  EXPECT_EQ(lines[0].y, (std::vector<double>{36, 37, 38}));
  EXPECT_NEAR(lines[0].high[0] - 36, std::sqrt(50), 1e-12);
  EXPECT_TRUE(lines[0].band);
  options.y = "los";
  EXPECT_NE(plot_refusal(results, options).find("no run has 'los' by step @ --y @ loss"),
            std::string::npos);
}

TEST(StudyPlot, SaysWhatItLeavesOut) {
  StudyResults results = depths();
  results.trials[0].state = TrialState::failed;
  results.trials[1].figures["tokens_per_s"] = std::nan("");
  const StudyPlot plot = plot_study(results, rate());
  EXPECT_TRUE(std::isnan(std::get<Lines>(plot.chart.marks).series[0].y[0]));
  EXPECT_EQ(plot.notes[0], "11 of 12 trials are done; the others are not drawn");
  EXPECT_EQ(plot.notes[1], "tokens_per_s is not finite in trial 2: not drawn");
  results.trials[5].facts["commit"] = "other";
  EXPECT_NE(plot_refusal(results, rate()).find("differ in commit"), std::string::npos);
}

TEST(StudyPlot, IsTheSameWhateverOrderTrialsFinishedIn) {
  StudyResults results = depths();
  const std::string first = svg(plot_study(results, rate()).chart);
  std::mt19937 random(1);
  std::ranges::shuffle(results.trials, random);
  EXPECT_EQ(svg(plot_study(results, rate()).chart), first);
  EXPECT_NE(first.find("zb-v"), std::string::npos);
}

TEST(StudyPlot, ChoosesALogarithmWhereValuesAreSpreadLikeOne) {
  const auto scale = [](std::vector<std::string> values) {
    StudyResults results;
    results.axes = {"optimizer.lr"};
    for (const std::string& value : values) {
      TrialRecord& trial = results.trials.emplace_back();
      trial.number = static_cast<int>(results.trials.size());
      trial.settings = {{"optimizer.lr", value}};
      trial.state = TrialState::done;
      trial.figures = {{"loss", 1}};
    }
    return plot_study(results, {}).chart.x.scale;
  };
  EXPECT_EQ(scale({"1e-3", "3e-3", "1e-2"}), Scale::log);
  EXPECT_EQ(scale({"1", "5", "10"}), Scale::linear);
  EXPECT_EQ(scale({"0.1", "0.2", "0.3"}), Scale::linear);
  EXPECT_EQ(scale({"0", "0.001", "1"}), Scale::linear);
  EXPECT_EQ(scale({"1", "2"}), Scale::log2);
  EXPECT_EQ(scale({"-1", "8"}), Scale::linear);
}

TEST(StudyPlot, RefusesWhatItCannotDraw) {
  const auto refused = [](auto change) {
    PlotOptions options;
    change(options);
    return plot_refusal(depths(), options);
  };
  const auto has = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  has(refused([](PlotOptions& o) { o.y = "tokens"; }), "no trial has the column 'tokens'");
  has(refused([](PlotOptions& o) { o.x = "pp"; }), "@ --x @");
  has(refused([](PlotOptions& o) { o.group = {"pp"}; }), "@ --group @");
  has(refused([](PlotOptions& o) { o.kind = PlotKind::lines, o.x = "parallel.schedule"; }),
      "values that are no numbers @ --x");
  has(refused([](PlotOptions& o) {
        o.kind = PlotKind::heatmap;
        o.group = {"parallel.pp", "run.seed"};
      }),
      "a heat map has one axis for its rows");
  has(refused([](PlotOptions& o) { o.kind = PlotKind::pareto, o.x = "parallel.schedule"; }),
      "no number in trial 1");
  StudyResults results = depths();
  results.axes = {"run.seed"};
  has(plot_refusal(results, {}), "nothing but the seed differs");
  for (TrialRecord& trial : results.trials) trial.state = TrialState::open;
  has(plot_refusal(results, {}), "no trial is done");
  EXPECT_THROW(plot_kind("line"), Error);
  EXPECT_THROW(plot_kind("automatic"), Error);
  EXPECT_THROW(plot_spread("se"), Error);
}

}  // namespace
}  // namespace concertina
