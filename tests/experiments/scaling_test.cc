// Scaling studies without a launch: their points and predictions.
#include "experiments/study/scaling.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/run/planning.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

RunConfig config() {
  RunConfig config;
  for (const char* set : {"model.layers=6", "model.width=64", "model.heads=4", "model.context=32",
                          "batch.global=32", "batch.microbatches=16", "parallel.pp=2"})
    set_config(set, config);
  return config;
}

TEST(Scaling, PointsGrowWhatIsAskedFor) {
  ScalingOptions options;
  options.ranks = {2, 4, 8};
  std::vector<ScalingPoint> points = scaling_points(config(), options);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[2].pp, 2);
  EXPECT_EQ(points[2].dp, 4);
  EXPECT_EQ(points[2].global, 32) << "strong scaling keeps the batch";
  options.weak = options.grows_pipeline = true;
  options.microbatches = {4, 16};
  points = scaling_points(config(), options);
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[5].pp, 8);
  EXPECT_EQ(points[5].dp, 1);
  EXPECT_EQ(points[4].global, 128) << "weak scaling: four times the ranks and the batch";
  EXPECT_EQ(points[4].microbatches, 64);
  EXPECT_EQ(points[5].global, 32) << "4 x 4 microbatches of 2 samples";
  options = {};
  options.ranks = {1, 2};
  EXPECT_THROW(scaling_points(config(), options), Error) << "1 rank cannot have a pipeline of 2";
  options.ranks = {2, 64};
  EXPECT_THROW(require_layouts(config(), options), Error) << "32 replicas of 16 microbatches";
}

/// Creates run directories as a launch would, with given values.
class ScalingRuns : public testing::Test {
 protected:
  std::string run(int ranks, double unit_seconds, double step_ms, bool links = false) {
    const std::string path = directory_.path() + "/" + std::to_string(++count_);
    std::filesystem::create_directory(path);
    MeasuredCosts costs;
    RunConfig own = config();
    own.parallel.dp = ranks / 2;
    costs.config = write_config(own);
    for (const UnitSpec& unit : job_of(own).model.units) {
      costs.names.push_back(unit.name);
      costs.units.push_back({unit_seconds, unit_seconds, unit_seconds, 0});
    }
    costs.machine.update_s_per_element = 1e-9;
    if (links) costs.machine.local = {.latency = 1e-5, .bandwidth = 1e9};
    std::ofstream(path + "/costs.json") << to_json(costs).dump();
    std::ofstream(path + "/result.json") << nlohmann::json{{"median_step_ms", step_ms}};
    return path;
  }
  TemporaryDirectory directory_;
  int count_ = 0;
};

TEST_F(ScalingRuns, APredictionStandsOnTheNextSmallerMeasurement) {
  ScalingOptions options;
  options.ranks = {2, 4, 8};
  options.measured = 4;
  // The median of three rounds with 2 ranks counts; with 4 ranks, units were twice as slow.
  const std::vector<std::vector<std::string>> runs = {
      {run(2, 5e-4, 90), run(2, 1e-3, 100), run(2, 4e-3, 400)}, {run(4, 2e-3, 70, true)}, {}};
  const nlohmann::ordered_json results = scaling_predictions(config(), options, runs);
  ASSERT_EQ(results.size(), 3u);
  const auto part = [&](std::size_t point, const char* name) {
    return results[point]["predicted_parts"][name].get<double>();
  };
  EXPECT_EQ(results[0]["predicted_from"], runs[0][1]);
  EXPECT_EQ(results[1]["predicted_from"], runs[0][1]);
  EXPECT_EQ(results[2]["predicted_from"], runs[1][0]);
  // Both halves of 14 units, 16 microbatches over 2 ranks; with 2 pipelines, 8 each.
  const auto units = static_cast<double>(job_of(config()).model.units.size());
  EXPECT_NEAR(part(0, "compute"), units * 3e-3 * 16 / 2, 1e-9);
  EXPECT_NEAR(part(1, "compute"), units * 3e-3 * 16 / 4, 1e-9);
  EXPECT_NEAR(part(2, "compute"), units * 6e-3 * 16 / 8, 1e-9);
  EXPECT_GT(part(1, "reduction"), 0);
  EXPECT_GT(part(0, "transfer"), 0) << "links are taken from the other measurement";
  EXPECT_GT(part(0, "bubble"), 0);
  EXPECT_EQ(part(0, "cores"), 0);
}

TEST_F(ScalingRuns, RanksThatShareCoresAreSlower) {
  ScalingOptions options;
  options.ranks = {2, 4};
  options.measured = 4;
  const std::vector<std::vector<std::string>> runs = {{run(2, 1e-3, 100)}, {}};
  const auto seconds = [&](const char* part) {
    double sum = 0;
    const nlohmann::ordered_json results = scaling_predictions(config(), options, runs);
    for (const auto& [name, value] : results[1]["predicted_parts"].items())
      sum += part == name || part == std::string("all") ? value.get<double>() : 0;
    return sum;
  };
  const double alone = seconds("all");
  options.cores = 2;
  EXPECT_GT(seconds("cores"), 0.3 * alone);
  EXPECT_LE(seconds("all"), 2 * alone);
}

}  // namespace
}  // namespace concertina
