// Runs on disk with any of their metrics missing.
#include "experiments/study/run_set.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/record/report_metrics.h"
#include "experiments/record/training_clock.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

/// A key of metrics.jsonl, the table column that shows it, and a value below 0.
struct LoggedMetric {
  const char *key, *column;
  double value;
};
constexpr std::array<LoggedMetric, 5> kMetrics = {{{"loss", "loss", 4},
                                                   {"tokens_per_s", "tokens_per_s", 50},
                                                   {"step_ms", "median_step_ms", 20},
                                                   {"bubble", "bubble", 0.25},
                                                   {"grad_norm", "grad_norm", 2}}};
constexpr unsigned kSubsets = 1U << kMetrics.size();

bool has_metric(unsigned subset, std::size_t metric) {
  return (subset >> metric & 1U) != 0;
}

/// Writes a run with exactly these metrics. A missing one is omitted, null or, for times, 0.
void write_run(const std::string& directory, unsigned subset, const char* absent) {
  fs::create_directories(directory);
  std::ofstream metrics(directory + "/metrics.jsonl");
  for (int step = 1; step <= 3; ++step) {
    nlohmann::json line = {{"step", step}};
    for (std::size_t f = 0; f < kMetrics.size(); ++f) {
      const std::string key = kMetrics[f].key;
      if (has_metric(subset, f))
        line[key] = kMetrics[f].value;
      else if (std::string(absent) == "null")
        line[key] = nullptr;
      else if (std::string(absent) == "0" && (key == "step_ms" || key == "tokens_per_s"))
        line[key] = 0;
    }
    metrics << line << "\n";
  }
}

/// Metrics that are missing in a log, or null, are not part of the run.
TEST(RunSet, LeavesOutFiguresThatTheLogLacks) {
  for (const char* const absent : {"left out", "null", "0"})
    for (unsigned subset = 0; subset < kSubsets; ++subset) {
      const TemporaryDirectory directory;
      write_run(directory.path(), subset, absent);
      std::ofstream(directory.path() + "/result.json") << R"({"steps":3})";
      const TrialRecord run = read_runs({directory.path()}).trials.at(0);
      for (std::size_t f = 0; f < kMetrics.size(); ++f) {
        const auto found = run.metrics.find(kMetrics[f].column);
        const bool finite = found != run.metrics.end() && std::isfinite(found->second);
        EXPECT_EQ(finite, has_metric(subset, f)) << kMetrics[f].column << " " << absent << subset;
      }
    }
}

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

/// An evaluation without a duration makes the training time unknown.
TEST(TrainingClock, IsUnknownWhereAnEvaluationSaysNoSeconds) {
  RunLog log{metrics_of({{{"step", 1}, {"time", "2026-01-01T00:00:00.000Z"}},
                         {{"step", 2}, {"time", "2026-01-01T00:00:10.000Z"}}}),
             validations_of({{{"step", 1},
                              {"event", "validation"},
                              {"loss", 2},
                              {"seconds", 4},
                              {"time", "2026-01-01T00:00:05.000Z"}}})};
  EXPECT_EQ(training_seconds(log).value, (std::vector<double>{0, 6}));
  log.validations[0].seconds = kNoValue;
  EXPECT_TRUE(training_seconds(log).value.empty());
}

/// A run that keeps its best checkpoint is represented by the evaluation of that checkpoint.
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
    EXPECT_EQ(run.metrics.at("validation_loss"), keeps ? 1.5 : 2.5);
    EXPECT_EQ(run.metrics.at("validation_accuracy"), keeps ? 0.9 : 0.5);
    EXPECT_EQ(run.metrics.at("validation_tokens"), keeps ? 10 : 20);
    EXPECT_EQ(run.metrics.contains("validation_bits_per_byte"), !keeps);
  }
}

}  // namespace
}  // namespace concertina
