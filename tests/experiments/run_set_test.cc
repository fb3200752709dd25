// Runs as they lie on disk, with any of their figures missing: no table, page or picture shows one
// that a log does not have, and none of these is ever the best.
#include "experiments/study/run_set.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/record/report_figures.h"
#include "experiments/results/study_course.h"
#include "experiments/results/study_plot.h"
#include "experiments/results/study_report.h"
#include "experiments/study/run_bits.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// A key of metrics.jsonl, the column of a table that shows it, and a figure that is worse than 0.
struct LoggedFigure {
  const char *key, *column;
  double value;
};
constexpr std::array<LoggedFigure, 5> kFigures = {{{"loss", "loss", 4},
                                                   {"tokens_per_s", "tokens_per_s", 50},
                                                   {"step_ms", "median_step_ms", 20},
                                                   {"bubble", "bubble", 0.25},
                                                   {"grad_norm", "grad_norm", 2}}};
constexpr unsigned kSubsets = 1U << kFigures.size();

bool has_figure(unsigned subset, std::size_t figure) {
  return (subset >> figure & 1U) != 0;
}

/// A run that has these figures and no other; one that is not there is left out, null or 0 where
/// nothing takes no time.
void write_run(const std::string& directory, unsigned subset, const char* absent) {
  fs::create_directories(directory);
  std::ofstream metrics(directory + "/metrics.jsonl");
  for (int step = 1; step <= 3; ++step) {
    nlohmann::json line = {{"step", step}};
    for (std::size_t f = 0; f < kFigures.size(); ++f) {
      const std::string key = kFigures[f].key;
      if (has_figure(subset, f))
        line[key] = kFigures[f].value;
      else if (std::string(absent) == "null")
        line[key] = nullptr;
      else if (std::string(absent) == "0" && (key == "step_ms" || key == "tokens_per_s"))
        line[key] = 0;
    }
    metrics << line << "\n";
  }
}

class MissingFigures : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (unsigned subset = 0; subset < kSubsets; ++subset) {
      folders_.push_back(directory_.path() + "/" + std::to_string(subset));
      write_run(folders_.back(), subset, GetParam());
    }
    for (const LoggedFigure& figure : kFigures) options_.metrics.emplace_back(figure.column);
    options_.by = {"run"};
    options_.mixed = true;
  }
  TemporaryDirectory directory_;
  std::vector<std::string> folders_;
  TableOptions options_;
};

TEST_P(MissingFigures, AreInNoTableAndNeverTheBest) {
  const StudyTable table = make_table(read_runs(folders_), options_);
  const nlohmann::ordered_json json = to_json(table);
  for (unsigned subset = 0; subset < kSubsets; ++subset)
    for (std::size_t f = 0; f < kFigures.size(); ++f) {
      const TableCell& cell = table.rows[subset].cells[f];
      const bool there = has_figure(subset, f);
      EXPECT_EQ(cell.summary.n, there ? 1 : 0) << subset << " " << kFigures[f].key;
      EXPECT_NEAR(there ? cell.summary.mean : 0, there ? kFigures[f].value : 0, 1e-9);
      EXPECT_FALSE(cell.best) << subset << " " << kFigures[f].key;
      const auto& figures = json["groups"][subset]["metrics"][kFigures[f].column];
      EXPECT_EQ(figures.contains("mean") && figures["mean"].is_number(), there);
    }
}

TEST_P(MissingFigures, AreInNoPageOrPictureOfTheRun) {
  for (unsigned subset = 0; subset < kSubsets; ++subset) {
    const RunLog log = read_log(folders_[subset]);
    const StudyResults runs = read_runs({folders_[subset], folders_[kSubsets - 1 - subset]});
    std::vector<std::string> both;
    for (std::size_t f = 0; f < kFigures.size(); ++f) {
      const StepCurve curve = curve_of(log, kFigures[f].key);
      EXPECT_EQ(std::ranges::any_of(curve.value, [](double y) { return std::isfinite(y); }),
                has_figure(subset, f));
      // One of the two runs has the figure.
      PlotOptions options;
      options.kind = PlotKind::bars;
      options.x = "run";
      options.y = kFigures[f].column;
      options.mixed = true;
      const StudyPlot plot = plot_study(runs, options);
      const BarSeries& bars = std::get<Bars>(plot.chart.marks).series.at(0);
      EXPECT_EQ(std::ranges::count_if(bars.values, [](double y) { return std::isfinite(y); }), 1);
    }
    const std::string page = study_page(load_study_page(runs, {.by = {"run"}, .mixed = true}, "p"));
    EXPECT_NE(page.find("loss-by-step"), page.npos);
    EXPECT_EQ(page.find(">0.000"), page.npos);
  }
}
INSTANTIATE_TEST_SUITE_P(Runs, MissingFigures, testing::Values("left out", "null", "0"),
                         [](const auto& one) {
                           return std::string(one.param) == "0"      ? "Zero"
                                  : std::string(one.param) == "null" ? "Null"
                                                                     : "LeftOut";
                         });

TEST(StepTotals, EachIsOfTheStepsThatHaveIt) {
  const auto totals = [](const nlohmann::json& first, const nlohmann::json& second) {
    return to_json(total(metrics_of({first, second})));
  };
  using Json = nlohmann::ordered_json;
  EXPECT_EQ(totals({{"step", 1}}, {{"step", 2}}), Json::object());
  EXPECT_EQ(totals({{"step", 1}, {"tokens_per_s", 30}}, {{"step", 2}, {"tokens_per_s", 60}}),
            Json({{"tokens_per_s", 40.0}}));
  EXPECT_EQ(
      totals({{"step", 1}, {"step_ms", 500}, {"bubble", 0.5}}, {{"step", 2}, {"step_ms", 500}}),
      Json({{"steps", 2}, {"steps_s", 1.0}, {"median_step_ms", 500.0}, {"bubble", 0.5}}));
}

/// An evaluation that does not say how long it took leaves the time of training unknown.
TEST(TrainingClock, IsUnknownWhereAnEvaluationSaysNoSeconds) {
  RunLog log{metrics_of({{{"step", 1}, {"time", "2026-01-01T00:00:00.000Z"}},
                         {{"step", 2}, {"time", "2026-01-01T00:00:10.000Z"}}}),
             validations_of({{{"step", 1},
                              {"event", "validation"},
                              {"loss", 2},
                              {"seconds", 4},
                              {"time", "2026-01-01T00:00:05.000Z"}}})};
  EXPECT_EQ(training_seconds(log).value, (std::vector<double>{0, 6}));
  log.validations[0].seconds = kNoFigure;
  EXPECT_TRUE(training_seconds(log).value.empty());
}

/// Runs of other lengths have other ends, which is no difference of their bits.
TEST(RunBits, SaysThatOneOfTwoRunsIsShorter) {
  const TemporaryDirectory directory;
  write_run(directory.path() + "/a", kSubsets - 1, "");
  write_run(directory.path() + "/b", kSubsets - 1, "");
  std::ofstream(directory.path() + "/b/metrics.jsonl", std::ios::app)
      << "{\"step\":4,\"loss\":4}\n";
  const StudyResults runs = read_runs({directory.path() + "/a", directory.path() + "/b"});
  const std::string text = bits_text(compare_bits(runs.trials[0], runs.trials[1]));
  EXPECT_NE(text.find("one is shorter: 4 steps against 3"), text.npos) << text;
}

/// The evaluation of the checkpoint that a run keeps is what it is known by.
TEST(RunSet, TakesTheFiguresOfTheBestCheckpointWhereTheRunKeepsIt) {
  for (const bool keeps : {true, false}) {
    const TemporaryDirectory directory;
    write_run(directory.path(), kSubsets - 1, "");
    std::ofstream(directory.path() + "/config.toml")
        << (keeps ? "[checkpoint]\nbest = \"validation_loss\"\n" : "[checkpoint]\nbest = \"\"\n");
    std::ofstream(directory.path() + "/events.jsonl")
        << R"({"step":1,"event":"validation","loss":1.5,"tokens":10,"accuracy":0.9,"data":"d"})"
        << "\n"
        << R"({"step":3,"event":"validation","loss":2.5,"tokens":20,"accuracy":0.5,"data":"d"})"
        << "\n";
    std::ofstream(directory.path() + "/result.json")
        << R"({"steps":3,"best_step":1,"validation_loss":2.5,"validation_tokens":20,"validation_accuracy":0.5,)"
           R"("validation_bits_per_byte":3})";
    const TrialRecord run = read_runs({directory.path()}).trials.at(0);
    EXPECT_EQ(run.figures.at("validation_loss"), keeps ? 1.5 : 2.5);
    EXPECT_EQ(run.figures.at("validation_accuracy"), keeps ? 0.9 : 0.5);
    EXPECT_EQ(run.figures.at("validation_tokens"), keeps ? 10 : 20);
    EXPECT_EQ(run.figures.contains("validation_bits_per_byte"), !keeps);
  }
}

}  // namespace
}  // namespace concertina
