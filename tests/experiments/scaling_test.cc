// Scaling studies without a launch: which points they have, how a step is taken apart, the line.
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
  EXPECT_EQ(points[2].global, 32) << "strong: the batch stays";
  options.weak = options.grows_pipeline = true;
  options.microbatches = {4, 16};
  points = scaling_points(config(), options);
  ASSERT_EQ(points.size(), 6u);
  EXPECT_EQ(points[5].pp, 8);
  EXPECT_EQ(points[5].dp, 1);
  EXPECT_EQ(points[4].global, 128) << "weak: four times the ranks, four times the batch";
  EXPECT_EQ(points[4].microbatches, 64);
  EXPECT_EQ(points[5].global, 32) << "4 x 4 microbatches of 2 samples";
  options = {};
  options.ranks = {1, 2};
  EXPECT_THROW(scaling_points(config(), options), Error) << "1 rank has no pipeline of 2";
  options.ranks = {2, 64};
  EXPECT_THROW(require_layouts(config(), options), Error) << "32 replicas of 16 microbatches";
}

/// A run directory as a launch leaves it: figures by hand.
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
    nlohmann::json result = {
        {"median_step_ms", step_ms},
        {"recorded",
         {{"bubble", 0.25}, {"bubble_causes", {{"schedule", 0.2}, {"transfer", 0.05}}}}}};
    std::ofstream(path + "/result.json") << result.dump();
    return path;
  }
  TemporaryDirectory directory_;
  int count_ = 0;
};

TEST_F(ScalingRuns, APredictionStandsOnTheNextSmallerMeasurement) {
  ScalingOptions options;
  options.ranks = {2, 4, 8};
  options.measured = 4;
  // The middle one of three rounds of 2 ranks; 4 ranks were measured with units twice as slow.
  const std::vector<std::vector<std::string>> runs = {
      {run(2, 5e-4, 90), run(2, 1e-3, 100), run(2, 4e-3, 400)}, {run(4, 2e-3, 70, true)}, {}};
  const std::vector<ScalingResult> results = scaling_results(config(), options, runs);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_DOUBLE_EQ(results[0].measured->median, 0.1);
  EXPECT_FALSE(results[2].measured);
  EXPECT_EQ(results[0].predicted_from, runs[0][1]);
  EXPECT_EQ(results[1].predicted_from, runs[0][1]);
  EXPECT_EQ(results[2].predicted_from, runs[1][0]);
  // Both halves of 14 units, 16 microbatches over 2 ranks; of 8 over each of 2 pipelines.
  const auto units = static_cast<double>(job_of(config()).model.units.size());
  EXPECT_NEAR(results[0].predicted.compute, units * 3e-3 * 16 / 2, 1e-9);
  EXPECT_NEAR(results[1].predicted.compute, units * 3e-3 * 16 / 4, 1e-9);
  EXPECT_NEAR(results[2].predicted.compute, units * 6e-3 * 16 / 8, 1e-9);
  EXPECT_GT(results[1].predicted.reduction, 0);
  EXPECT_GT(results[0].predicted.transfer, 0) << "links as the other measurement has them";
  EXPECT_GT(results[0].predicted.bubble, 0);
  EXPECT_EQ(results[0].predicted.cores, 0);
  EXPECT_NEAR(results[0].measured->parts.total(), 0.1, 1e-9);
  const nlohmann::ordered_json report = scaling_json(results, options);
  EXPECT_NEAR(report["results"][1]["measured_speedup"].get<double>(), 100.0 / 70, 1e-9);
  EXPECT_NEAR(report["results"][1]["measured_efficiency"].get<double>(), 100.0 / 70 / 2, 1e-9);
  // Each row says whether its speed-up and efficiency are measured.
  const std::string text = scaling_text(report);
  EXPECT_NE(text.find("%  measured"), std::string::npos) << text;
  EXPECT_NE(text.find("  predicted "), std::string::npos) << text;
  double sum = 0;
  for (const auto& [name, share] : report["results"][2]["predicted_parts"].items())
    sum += share.get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST_F(ScalingRuns, RanksThatShareCoresAreSlower) {
  ScalingOptions options;
  options.ranks = {2, 4};
  options.measured = 4;
  const std::vector<std::vector<std::string>> runs = {{run(2, 1e-3, 100)}, {}};
  const double alone = scaling_results(config(), options, runs)[1].predicted.total();
  options.cores = 2;
  const StepParts shared = scaling_results(config(), options, runs)[1].predicted;
  EXPECT_GT(shared.cores, 0.3 * alone);
  EXPECT_LE(shared.total(), 2 * alone);
}

TEST(Scaling, ALineIsFittedAndSaysHowFarOffItIs) {
  std::vector<ScalingResult> results;
  for (const int m : {4, 8, 16}) {
    ScalingResult result;
    result.point = {.ranks = 4, .microbatches = m};
    result.predicted.compute = 0.5 + 0.25 * m;
    result.measured = Measured{.steps = {}, .median = m == 8 ? 5.1 : 1 + 0.5 * m, .parts = {}};
    results.push_back(result);
  }
  const std::vector<StepFit> fits = step_fits(results);
  ASSERT_EQ(fits.size(), 2u);
  EXPECT_FALSE(fits[1].measured);
  EXPECT_NEAR(fits[1].a, 0.5, 1e-12);
  EXPECT_NEAR(fits[1].b, 0.25, 1e-12);
  EXPECT_NEAR(fits[1].error, 0, 1e-12);
  EXPECT_GT(fits[0].error, 0.01) << "5.1 is 0.1 above the line";
  EXPECT_LT(fits[0].error, 0.02);
}

}  // namespace
}  // namespace concertina
