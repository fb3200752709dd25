// `concertina plan` without a launch: it reports every rank's own memory, and its text stays short.
#include "experiments/predict/plan_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "experiments/config/config_toml.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/trainer.h"
#include "tests/errors.h"
#include "tests/own_figures.h"
#include "tests/planned.h"

namespace concertina {
namespace {

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 60;

RunConfig small(const std::vector<std::string>& sets) {
  RunConfig config;
  for (const char* set : {"model.layers=3", "model.width=32", "model.heads=2", "model.context=16",
                          "batch.global=16", "batch.microbatches=16"})
    set_config(set, config);
  for (const std::string& set : sets) set_config(set, config);
  validate(config);
  return config;
}

nlohmann::ordered_json report(const RunConfig& config, int world, std::uint64_t available) {
  return plan_report(config, {.world = world, .gflops = 100}, MemoryBytes{kPlenty, available});
}

std::ptrdiff_t lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

struct Case {
  int world;
  std::vector<std::string> sets;
};

class Layouts : public testing::TestWithParam<Case> {};

TEST_P(Layouts, MemoryIsThatOfEachRanksOwnEngine) {
  const RunConfig config = small(GetParam().sets);
  const PlannedJob run = planned(config, GetParam().world);
  const std::vector<RankMemory> predicted = predict_memory(config, run.job, run, 1);
  const auto model = model_of(config);
  ASSERT_EQ(std::ssize(predicted), run.world);
  for (int rank = 0; rank < run.world; ++rank) {
    const auto backend = make_cpu_backend(1);
    const RankMemory own = StepEngine(run.job, run, rank, stage_factory(*model, *backend),
                                      *optimizer_of(config), 1, *backend)
                               .memory();
    const RankMemory& mine = predicted[rank];
    ASSERT_EQ(own.parts.size(), mine.parts.size());
    for (std::size_t i = 0; i < own.parts.size(); ++i)
      EXPECT_EQ(own.parts[i].bytes, mine.parts[i].bytes) << own.parts[i].name << " rank " << rank;
  }
}

TEST_P(Layouts, FiguresOfOneReportAgree) {
  const auto plan = report(small(GetParam().sets), GetParam().world, kPlenty);
  EXPECT_TRUE(plan["warnings"].empty());
  std::size_t ranks = 0, all = 0;
  for (const auto& group : plan["memory"]) {
    ranks += group["ranks"].size();
    all += group["ranks"].size() * group["bytes"]["total_bytes"].get<std::size_t>();
  }
  EXPECT_EQ(ranks, plan["world"]);
  EXPECT_EQ(all, plan["all_ranks_bytes"]);
  for (const auto& pipeline : plan["pipelines"]) {
    double share = 0;
    for (const auto& stage : pipeline["stages"]) share += stage["flops_share"].get<double>();
    EXPECT_NEAR(share, 1, 1e-9);
  }
  const double step = plan["step_ms"];
  for (std::size_t rank = 0; rank < plan["busy_ms"].size(); ++rank)
    EXPECT_NEAR(1 - plan["busy_ms"][rank].get<double>() / step,
                plan["bubble"]["ranks"][rank].get<double>(), 1e-9);
}

TEST_P(Layouts, PrintedLayoutIsOneThatConfigReads) {
  const RunConfig config = small(GetParam().sets);
  const auto plan = report(config, GetParam().world, kPlenty);
  const RunConfig again = small({"parallel.layout=" + plan["layout_toml"].get<std::string>(),
                                 "parallel.schedule=" + config.parallel.schedule});
  EXPECT_EQ(planned(again, GetParam().world).layout, planned(config, GetParam().world).layout);
}

INSTANTIATE_TEST_SUITE_P(
    All, Layouts,
    testing::Values(
        Case{1, {}}, Case{4, {"parallel.pp=4", "parallel.schedule=gpipe"}},
        Case{3, {"parallel.dp=3"}}, Case{12, {"parallel.pp=4"}},
        Case{4, {"parallel.pp=2", "parallel.chunks=2"}},
        Case{4, {"parallel.pp=2", "parallel.schedule=zb-v"}},
        Case{4, {"parallel.pp=2", "parallel.schedule=chimera"}},
        Case{3,
             {"parallel.layout=[{microbatches=[0,10],stages=[{rank=0,units=[0,3]},{rank=1,units=[3,"
              "8]}]},{microbatches=[10,16],stages=[{rank=2,units=[0,8]}]}]"}}));

TEST(PlanReport, ActivationsAreMicrobatchesOfStages) {
  const auto plan = report(small({"parallel.pp=2", "parallel.chunks=2"}), 2, kPlenty);
  expect_has(plan_text(plan), "peak activations, microbatch-stages\n");
}

TEST(PlanReport, SaysWhichLinksItCounts) {
  const RunConfig config = small({"parallel.pp=2"});
  const std::string file = testing::TempDir() + "plan_links.toml";
  std::ofstream(file) << "flops_per_s = 1e9\nupdate_s_per_element = 1e-9\n"
                         "[local]\nlatency_s = 1e-2\n";
  const auto of = [&](const PlanOptions& options) {
    return plan_report(config, options, std::nullopt);
  };
  const auto without = of({.world = 2, .gflops = 1}), with = of({.world = 2, .costs = file}),
             links = of({.world = 2, .gflops = 1, .links = file});
  expect_has(plan_text(without), "links: none given: transfers are free");
  expect_has(plan_text(without), "not included: other kernels and the update");
  for (const auto& plan : {with, links}) {
    EXPECT_EQ(plan["links"]["from"], file);
    EXPECT_FALSE(plan["links"]["free"]);
    expect_has(plan_text(plan), "links: from " + file);
    EXPECT_GT(plan["step_ms"].get<double>(), without["step_ms"].get<double>());
  }
  expect_has(plan_text(with), "not included: other kernels");
  expect_has(plan_text(links), "not included: other kernels and the update");
  std::filesystem::remove(file);
}

TEST(PlanReport, DoubleRateHalvesTheStep) {
  const RunConfig config = small({"parallel.pp=2"});
  const auto slow = plan_report(config, {.world = 2, .gflops = 50}, std::nullopt);
  const auto fast = plan_report(config, {.world = 2, .gflops = 100}, std::nullopt);
  EXPECT_NEAR(slow["step_ms"].get<double>(), 2 * fast["step_ms"].get<double>(), 1e-9);
  EXPECT_TRUE(slow["machine"]["available_bytes"].is_null());
  EXPECT_GT(plan_report(config, {.world = 2}, std::nullopt)["rate_gflops_per_s"], 0.0);
}

TEST(PlanReport, AdviceIsALayoutThatFits) {
  const RunConfig config = small({"parallel.pp=1"});
  const std::size_t needed = report(config, 2, kPlenty)["peak_bytes"];
  const auto tight = report(config, 2, needed - 1);
  ASSERT_EQ(tight["warnings"].size(), 1U);
  expect_has(tight["warnings"][0].get<std::string>(),
             "layouts that fit: parallel.pp=2 parallel.dp=1");
  EXPECT_LT(report(small({"parallel.pp=2"}), 2, kPlenty)["peak_bytes"], needed);
  expect_has(report(config, 2, 1)["warnings"][0].get<std::string>(), "no layout of 2 ranks");
  expect_has(report(config, 2, needed)["warnings"][0].get<std::string>(), "at most 1 of them");
}

TEST(PlanReport, LargeWorldsStayShort) {
  const RunConfig config =
      small({"model.layers=15", "parallel.pp=32", "batch.global=64", "batch.microbatches=64"});
  const auto plan = report(config, 512, kPlenty);
  EXPECT_EQ(plan["bubble"]["ranks"].size(), 512U);
  EXPECT_LT(lines(plan_text(plan)), 128);
}

/// A plan is only arithmetic: it allocates no table of a model's 4096-element blocks and no engine
/// per rank, which would need the memory of the model itself.
TEST(PlanReport, LargeModelsTakeSecondsAndLittleMemory) {
  const std::vector<std::string> gpt3{"model.layers=96", "model.width=12288", "model.heads=96",
                                      "model.context=2048"};
  const auto with = [](std::vector<std::string> sets, const std::vector<std::string>& more) {
    sets.insert(sets.end(), more.begin(), more.end());
    return small(sets);
  };
  struct Large {
    RunConfig config;
    int world;
  };
  for (const Large& large :
       {Large{with(gpt3, {}), 1}, Large{with(gpt3, {"parallel.pp=16"}), 16},
        Large{with(gpt3, {"parallel.pp=16", "batch.global=512", "batch.microbatches=128",
                          "numerics.leaves=32"}),
              512},
        Large{small({"model.layers=2000", "model.width=1024", "parallel.pp=64"}), 64},
        Large{small({"model.layers=20", "model.width=1048576"}), 1}}) {
    const double start = cpu_seconds();
    const auto plan = report(large.config, large.world, 1);  // searches all layouts that fit
    const double seconds = cpu_seconds() - start;
    expect_has(plan["warnings"][0].get<std::string>(), "no layout");
    std::printf("%s, %.3g parameters: %.2f s of CPU, peak %.0f MB\n",
                plan["layout"].get<std::string>().c_str(), plan["parameters"].get<double>(),
                seconds, peak_bytes() * 1e-6);
    EXPECT_LT(seconds, 20);  // less than 4 on an idle machine
  }
  if (kOptimised) {
    EXPECT_LT(peak_bytes(), 200e6);
  }
}

TEST(PlanReport, WorldThatNoLayoutFits) {
  EXPECT_THROW(report(small({"parallel.pp=2"}), 3, kPlenty), Error);
}

/// The second of two stages sends everything to the first, which continues training alone.
TEST(MoveReport, CountsWhatTheRemainingRankLacks) {
  const RunConfig config = small({});
  const PlannedJob two = planned(small({"parallel.pp=2"}), 2);
  double bytes = 0;
  for (std::size_t b = 0; b < two.buckets.size(); ++b) {
    if (two.owners[b].index_of(0) < 0) bytes += 4.0 * static_cast<double>(two.buckets[b].elements);
    if (const Part* part = own_state(two, b, 1)) bytes += 8.0 * static_cast<double>(part->count());
  }
  const auto report =
      move_report(config, {.world = 2}, "parallel.pp=2", "parallel.pp=1 parallel.spare=1");
  EXPECT_EQ(report["moved_bytes"], bytes);
  EXPECT_EQ(report["busiest_rank"]["in_bytes"], bytes);
  EXPECT_EQ(report["pairs"].size(), 1U);
  EXPECT_EQ(report["to"]["spare"], 1);
  EXPECT_FALSE(report.contains("seconds"));
  expect_has(move_text(report), "pp2xdp1 1f1b -> pp1xdp1 1f1b, 1 spare");
  const auto none = move_report(config, {.world = 2}, "parallel.pp=2", "parallel.pp=2");
  EXPECT_EQ(none["moved_bytes"], 0);
  EXPECT_EQ(none["rounds"], 0);
}

}  // namespace
}  // namespace concertina
