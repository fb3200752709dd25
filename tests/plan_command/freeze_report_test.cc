// `plan freeze`: its ceilings hold for its own predictions, whatever the costs, the policy and the
// layout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "experiments/config/config_toml.h"
#include "experiments/predict/plan_report.h"
#include "tests/errors.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a report for a random size, model, machine, policy and layout.
Json random_report(std::mt19937& chance, const std::string& file) {
  const auto real = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(chance));
  };
  const auto one_of = [&](std::initializer_list<const char*> words) {
    return words.begin()[std::uniform_int_distribution<std::size_t>(0, words.size() - 1)(chance)];
  };
  const auto whole = [&](int low, int high) {
    return std::uniform_int_distribution(low, high)(chance);
  };
  RunConfig config;
  const int pp = whole(1, 4), dp = whole(1, 2);
  std::vector<std::string> sets{
      fmt::format("model.layers={}", whole(pp, 8)),
      fmt::format("model.width={}", 16 * whole(1, 8)),
      "model.heads=4",
      fmt::format("model.vocab={}", whole(8, 4000)),
      "model.context=32",
      "batch.global=32",
      fmt::format("batch.microbatches={}", 8 * whole(1, 2)),
      fmt::format("parallel.pp={}", pp),
      fmt::format("parallel.dp={}", dp),
      fmt::format("parallel.schedule={}", one_of({"gpipe", "1f1b", "zb-h1"}))};
  const std::string policy = one_of({"pipetransformer", "linear", "list"});
  sets.push_back("freeze.policy=" + policy);
  if (policy == "pipetransformer") sets.push_back(fmt::format("freeze.alpha={}", real(.1, .9)));
  if (policy == "list") sets.push_back(R"(freeze.at=["epoch 1: 1", "epoch 2: 2"])");
  for (const std::string& set : sets) set_config(set, config);
  validate(config);
  std::ofstream(file) << fmt::format(
      "flops_per_s = {}\nlayer_s = {}\nmemory_bytes_per_s = {}\npost_s = {}\n"
      "cache_read_s_per_byte = {}\nranks_per_host = {}\n[local]\nlatency_s = {}\nbytes_per_s = {}\n"
      "[remote]\nlatency_s = {}\nbytes_per_s = {}\n",
      real(1e9, 1e12), whole(0, 1) * real(1e-6, 1e-3), real(1e9, 1e12), real(1e-7, 1e-4),
      real(1e-10, 1e-7), whole(1, 4), real(1e-7, 1e-3), real(1e7, 1e11), real(1e-6, 1e-2),
      real(1e6, 1e10));
  return course_report(config, {.world = pp * dp, .costs = file},
                       {.epochs = whole(1, 6), .samples = whole(32, 400)});
}

TEST(FreezeReport, NoPredictionIsAboveItsCeiling) {
  const std::string file = testing::TempDir() + "freeze_report_test.toml";
  std::mt19937 chance(7);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    const Json report = random_report(chance, file);
    double epochs = report["epochs"].get<int>();
    for (const Json& rung : report["ladder"]) {
      EXPECT_LE(rung["unfrozen_epochs"].get<double>(), epochs * (1 + 1e-9));
      epochs = rung["unfrozen_epochs"];
      if (rung["rung"] == "static") continue;
      for (const std::string over : {"over_static", "over_best"})
        EXPECT_LE(rung[over].get<double>(), rung["ceiling_" + over].get<double>() * (1 + 1e-9))
            << rung.dump();
    }
  }
  std::filesystem::remove(file);
}

TEST(FreezeReport, ThePapersRuleCostsThreeEpochsHoweverManyThereAre) {
  RunConfig config;
  for (const char* set :
       {"model.layers=12", "model.width=64", "model.heads=4", "model.vocab=8", "parallel.pp=2",
        "freeze.policy=pipetransformer", "freeze.rounding=ceil", "freeze.max=11"})
    set_config(set, config);
  const auto worth = [&](int epochs) {
    return course_report(config, {.world = 2, .gflops = 50}, {.epochs = epochs, .samples = 4000});
  };
  EXPECT_NEAR(worth(10)["ladder"].back()["unfrozen_epochs"].get<double>(), 3.2, .1);
  EXPECT_NEAR(worth(30)["ladder"].back()["unfrozen_epochs"].get<double>(), 4.9, .3);
  expect_has(course_text(worth(10)), "or 3.2 with a cache");
}

}  // namespace
}  // namespace concertina
