// The report of replicas: its prediction includes the reduction of gradients according to the run's
// costs.json; without that file, it reports what is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "experiments/config/config_toml.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/record/tracing.h"
#include "experiments/report/recorded_metrics.h"
#include "io/metrics.h"
#include "io/run_files.h"
#include "tests/integration/training.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

/// Writes what `train` leaves for `report`.
void train_into(const std::string& directory, const RunConfig& config, int ranks) {
  run_threads(ranks, [&](Communicator& world) {
    const auto backend = make_cpu_backend(config.run.threads);
    Trainer trainer(config, *backend, world);
    trainer.start();
    trainer.initialize();
    SyntheticSource source(config.model.context, config.model.vocab);
    Tracing tracing(trainer, config, 0, directory);
    for (std::int64_t step = 1; step <= config.run.steps; ++step) {
      tracing.before_step(step);
      trainer.step(step, source);
      tracing.after_step(step);
    }
    const MeasuredCosts costs = measure_costs(trainer, *backend, config.run.threads);
    if (world.rank() != 0) return;
    write_result(directory + "/costs.json", to_json(costs));
    std::ofstream(directory + "/config.toml") << write_config(config);
  });
}

/// Means over the recorded steps: of a step, and of the busiest rank's computing time.
struct Measured {
  double step = 0, compute = 0;
};
Measured measured(const RunTrace& trace) {
  Measured result;
  std::vector<double> compute(trace.plan.rows.size());
  const auto steps = static_cast<double>(trace.steps.size());
  for (const std::vector<StepRecord>& ranks : trace.steps) {
    result.step += span_of(ranks).seconds() / steps;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const std::vector<Action>& row = trace.plan.rows[rank];
      for (std::size_t i = 0; i < row.size(); ++i)
        if (is_compute(row[i].kind))
          compute[rank] +=
              (ranks[rank].actions[i].busy - waited(ranks[rank], ranks[rank].actions[i])) / steps;
    }
  }
  result.compute = *std::max_element(compute.begin(), compute.end());
  return result;
}

/// Returns the longest reduction in the prediction, including the wait for it.
double longest_reduction(const ReportMetrics& metrics, const Plan& plan) {
  double longest = 0;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    for (std::size_t i = 0; i < plan.rows[rank].size(); ++i)
      if (plan.rows[rank][i].kind == Kind::REDUCE)
        longest = std::max(
            longest, metrics.predicted.rows[rank][i].end - metrics.predicted.rows[rank][i - 1].end);
  return longest;
}

constexpr const char* kReductionBox = "waits for the transfer: gradients of other ranks";

/// What a run recorded.
struct Recorded {
  RunTrace trace;
  KnownCosts known;
};

class PredictedReduction : public testing::Test {
 protected:
  PredictedReduction() {
    RunConfig config = with_grid(small_config(), 1, 2, "1f1b");
    config.run.steps = 8;
    train_into(directory_.path(), config, 2);
  }
  Recorded recorded() const {
    Recorded run{read_run_trace(trace_path(directory_.path(), {})), {}};
    run.known = known_costs(directory_.path(), run.trace.layout, run.trace.plan);
    return run;
  }
  std::string path(const char* file) const { return directory_.path() + "/" + file; }

  const TemporaryDirectory directory_;
};

TEST_F(PredictedReduction, IsThatOfTheRun) {
  const Recorded run = recorded();
  ASSERT_TRUE(run.known.costs) << run.known.missing;
  EXPECT_FALSE(run.known.costs->buckets.empty());
  const ReportMetrics metrics = compute_metrics(run.trace, run.known);
  const Measured is = measured(run.trace);
  EXPECT_GE(metrics.predicted_seconds, is.compute);
  EXPECT_LT(metrics.predicted_seconds, 2 * is.step);
  EXPECT_GT(longest_reduction(metrics, run.trace.plan), 0);
  EXPECT_FALSE(to_json(run.trace, metrics).contains("costs_missing"));
}

TEST_F(PredictedReduction, GrowsWithTheLink) {
  nlohmann::json costs = nlohmann::json::parse(std::ifstream(path("costs.json")));
  costs["machine"]["local"]["bytes_per_s"] = 1e6;
  std::ofstream(path("costs.json")) << costs;
  const Recorded run = recorded();
  const ReportMetrics metrics = compute_metrics(run.trace, run.known);
  double bytes = 0;  // half of them in each direction, then half of the weights
  for (const BucketCosts& bucket : metrics.costs.buckets) bytes += bucket.bytes;
  EXPECT_GT(metrics.predicted_seconds, bytes / 1e6);
  EXPECT_GT(longest_reduction(metrics, run.trace.plan), bytes / 4 / 1e6);
  const std::string predicted = recorded_timeline(run.trace, metrics).at("panels").at(0).dump();
  EXPECT_NE(predicted.find(kReductionBox), std::string::npos);
  EXPECT_NE(predicted.find("waits for the transfer: weights of other ranks"), std::string::npos);
}

TEST_F(PredictedReduction, IsLeftOutWithoutCosts) {
  std::ofstream(path("costs.json")) << "{";
  EXPECT_EQ(recorded().known.missing, "invalid JSON (" + path("costs.json") + ")");
  std::filesystem::remove(path("costs.json"));
  const Recorded run = recorded();
  EXPECT_FALSE(run.known.costs);
  const ReportMetrics metrics = compute_metrics(run.trace, run.known);
  EXPECT_DOUBLE_EQ(longest_reduction(metrics, run.trace.plan), 0);
  EXPECT_TRUE(to_json(run.trace, metrics).contains("costs_missing"));
}

}  // namespace
}  // namespace concertina
