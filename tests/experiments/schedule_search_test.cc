// What `schedule search` promises: no named schedule within the limit is better, with any tried
// number of chunks. Named schedules are simulated here as by `schedule simulate`.
#include "experiments/predict/schedule_search_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "experiments/commands/schedule/schedule_options.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/check.h"
#include "parallel/simulate/simulate.h"
#include "tests/errors.h"
#include "tests/own_figures.h"

namespace concertina {
namespace {

constexpr std::int64_t kLittle = 20'000;  // the promise does not depend on the effort

/// Returns the shortest step of a named schedule with at most `memory` (0: any number) activations.
double best_named(const ScheduleSearch& search, const ScheduleCosts& costs, int max_chunks) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [name, schedule] : schedules())
    for (int chunks = 1; chunks <= max_chunks && !schedule.searched; ++chunks) try {
        ScheduleOptions options;
        options.schedule = std::string(name);
        options.ranks = search.ranks;
        options.microbatches = search.microbatches;
        options.chunks = chunks;
        const Planned one = plan_of(options);
        const Timeline timeline =
            simulate(one.plan, one.layout, costs.of(one.layout, one.plan, 1.0 / chunks));
        const double most =
            *std::max_element(timeline.peak_activations.begin(), timeline.peak_activations.end());
        if (search.memory == 0 || most <= search.memory * chunks)
          best = std::min(best, timeline.makespan);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Exit::bad_input);  // no such number of chunks, or of ranks
      }
  return best;
}

TEST(ScheduleSearch, StopsWhenToldToWithTheBestSoFar) {
  ScheduleSearch search{8, 16, 0};
  int asked = 0;
  double least = std::numeric_limits<double>::infinity();
  search.keep_searching = [&](const SearchProgress& progress) {
    EXPECT_LE(progress.best, least) << "best so far never grows";
    if (progress.doing != "moves") least = progress.best;
    return ++asked < 12;
  };
  const SearchedSchedule found = search_schedule(search, ScheduleCosts({"1", "1.5", "0.5"}));
  EXPECT_TRUE(found.report["stopped"].get<bool>());
  EXPECT_EQ(asked, 12) << "and not again";
  EXPECT_FALSE(check(found.plan, found.layout));
  EXPECT_EQ(found.report["makespan"], least);
  search.keep_searching = [](const SearchProgress&) { return false; };
  EXPECT_FALSE(search_schedule(search, ScheduleCosts({"1", "1", "1"})).plan.rows.empty());
}

TEST(ScheduleSearch, IsNeverWorseThanAnyNameAtAnyChunksTried) {
  const ScheduleCosts equal({"1", "1", "1"}), uneven({"1", "1.5", "0.5"});
  for (const ScheduleSearch& search :
       {ScheduleSearch{4, 8, 4.4}, {4, 8, 0}, {4, 8, 5.5}, {2, 6, 2.5}, {3, 7, 3.5}, {6, 12, 7}})
    for (const ScheduleCosts* costs : {&equal, &uneven})
      for (const int max_chunks : {0, 3}) {
        ScheduleSearch quick = search;
        quick.effort = kLittle;
        quick.max_chunks = max_chunks;
        quick.opposite = true;
        SCOPED_TRACE(fmt::format("p={} m={} memory={} chunks={}", quick.ranks, quick.microbatches,
                                 quick.memory, max_chunks));
        const SearchedSchedule found = search_schedule(quick, *costs);
        const int tried = max_chunks == 0 ? kMaxChunks : max_chunks;
        EXPECT_EQ(found.report["max_chunks"], tried);
        EXPECT_LE(found.report["makespan"].get<double>(),
                  best_named(quick, *costs, tried) * (1 + 1e-12));
        const double most =
            quick.memory > 0 ? quick.memory * found.report["chunks"].get<int>() : 1e9;
        for (const auto& peak : found.report["peak_activations"]["microbatch_stages"])
          EXPECT_LE(peak.get<double>(), most);
      }
}

TEST(ScheduleSearch, ListsEveryNumberOfChunks) {
  const SearchedSchedule found =
      search_schedule({.ranks = 4, .microbatches = 8, .max_chunks = 5, .effort = kLittle},
                      ScheduleCosts({"1", "1", "1"}));
  std::vector<int> tried;
  for (const auto& one : found.report["named"])
    if (one["schedule"] == "hanayo" || one["schedule"] == "looped-bfs")
      tried.push_back(one["chunks"].get<int>());
  EXPECT_EQ(tried, (std::vector{1, 2, 3, 4, 5, 2, 4}));
  EXPECT_NE(search_table(found.report).find("1..5"), std::string::npos);
}

TEST(ScheduleSearch, BoundsBeyondAllIntegersAreNoBounds) {
  const ScheduleCosts costs({"1", "1", "1"});
  const auto table = [&](double memory) {
    const SearchedSchedule found = search_schedule(
        {.ranks = 2, .microbatches = 4, .memory = memory, .effort = kLittle}, costs);
    for (const auto& one : found.report["named"])
      EXPECT_TRUE(one["within"].get<bool>()) << memory << " " << one.dump();
    return search_table(found.report);
  };
  const std::string any = table(0);
  for (const double memory : {1e3, 1e9, 2147483648.0, 1e18, 1e308}) EXPECT_EQ(table(memory), any);
}

TEST(ScheduleSearch, SaysWhatKeepsWeightsTwice) {
  const SearchedSchedule found = search_schedule({.ranks = 4, .microbatches = 8, .effort = kLittle},
                                                 ScheduleCosts({"1", "1", "1"}));
  int twice = 0;
  for (const auto& one : found.report["named"]) {
    const bool opposite = one["schedule"] == "chimera" || one["schedule"] == "dualpipe";
    EXPECT_EQ(one["weights"], opposite ? 2 : 1) << one.dump();
    twice += opposite ? 1 : 0;
  }
  EXPECT_EQ(twice, 2);
  EXPECT_NE(search_table(found.report).find("keeps weights twice: omitted without --opposite"),
            std::string::npos);
  const SearchedSchedule alone =
      search_schedule({.ranks = 1, .microbatches = 4}, ScheduleCosts({"1", "1", "1"}));
  for (const auto& one : alone.report["named"]) EXPECT_EQ(one["weights"], 1) << one.dump();
}

/// Here, the shortest step is that of chimera, which stores weights twice.
TEST(ScheduleSearch, FindsOppositePipelinesOnlyIfTheyAreAskedFor) {
  const ScheduleCosts costs({"1", "1", "1"});
  for (const bool opposite : {false, true}) {
    const SearchedSchedule found = search_schedule(
        {.ranks = 4, .microbatches = 4, .max_chunks = 1, .effort = kLittle, .opposite = opposite},
        costs);
    EXPECT_EQ(found.report["weights"], opposite ? 2 : 1);
    EXPECT_EQ(found.layout.pipelines.size(), opposite ? 2U : 1U);
  }
}

TEST(ScheduleSearch, FindsTheShortestSpan) {
  const ScheduleCosts costs({"18.522", "18.086", "9.337"}, {.latency = 0.601});
  ScheduleSearch search{.ranks = 8, .microbatches = 24, .memory = 16, .effort = kLittle};
  search.max_chunks = 1;
  search.objective = Objective::span;
  const auto bubble = [&](double kept) {
    search.kept_for_weight = kept;
    const SearchedSchedule found = search_schedule(search, costs);
    EXPECT_EQ(found.report["objective"], "span");
    EXPECT_LE(found.report["peak_activations"]["share"].get<double>(), 16 + 1e-9);
    for (const auto& one : found.report["named"]) {
      if (!one["within"].get<bool>() || one["weights"] > 1) continue;
      EXPECT_LE(found.report["span"].get<double>(), one["span"].get<double>()) << one.dump();
    }
    return found.report["bubble"]["definitions"]["zero_bubble"]["value"].get<double>();
  };
  EXPECT_NEAR(bubble(32 * 2304.0 / (34 * 2304 + 5 * 24 * 1024)), 0.0433, 5e-5);  // ZB-2p
  EXPECT_NEAR(bubble(1), 0.1015, 5e-5);  // a lower bound for any schedule, see search_test.cc
}

/// Uses exactly as many chunks as the file has rows for.
TEST(ScheduleSearch, TakesAFileWithARowPerStage) {
  const std::string file = testing::TempDir() + "search_rows.csv";
  std::ofstream(file) << "F,I,W\n1,1,1\n1,1,1\n2,1,1\n1,1,1\n1,1,1\n1,1,1\n";
  const ScheduleCosts costs({file});
  const SearchedSchedule found =
      search_schedule({.ranks = 3, .microbatches = 6, .effort = kLittle}, costs);
  EXPECT_EQ(found.report["chunks"], 2);
  for (const auto& one : found.report["named"]) EXPECT_EQ(one["chunks"], 2) << one.dump();
  for (const auto& [ranks, chunks] : {std::pair{4, 0}, {3, 1}, {12, 0}}) {
    const ScheduleSearch search{.ranks = ranks, .microbatches = 6, .max_chunks = chunks};
    expect_has(input_error([&] { search_schedule(search, costs); }).message(),
               "the file gives costs for 6 stages");
  }
  std::filesystem::remove(file);
}

/// At a realistic size; the result is no worse than any named schedule.
TEST(LargeSearch, TakesSeconds) {
  const ScheduleSearch options{.ranks = 8, .microbatches = 32, .memory = 8};
  const double start = cpu_seconds();
  const SearchedSchedule found = search_schedule(options, ScheduleCosts({"1", "1", "1"}));
  const double seconds = cpu_seconds() - start;
  double named = 0;
  for (const auto& one : found.report.at("named"))
    if (one.at("within").get<bool>())
      named = named == 0 ? one.at("makespan").get<double>()
                         : std::min(named, one.at("makespan").get<double>());
  const double makespan = found.report.at("makespan").get<double>();
  EXPECT_GT(named, 0);
  EXPECT_LE(makespan, named);
  EXPECT_GE(makespan, 3 * 32);
  std::printf("%d ranks, %d microbatches: searched in %.2f s, makespan %g, best with a name %g\n",
              options.ranks, options.microbatches, seconds, makespan, named);
  EXPECT_LT(seconds, 30) << "on one core";
}

}  // namespace
}  // namespace concertina
