// trace.json can be written, read, and opened by viewers; values of its steps.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/record/tracing.h"
#include "experiments/report/recorded_metrics.h"
#include "tests/synthetic_trace.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

Costs some_costs(const Layout& layout) {
  Costs costs = unit_costs(layout);
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    costs.stages[s] = {0.010 + 0.001 * static_cast<double>(s), 0.011, 0.009, 0, 0};
  costs.local.latency = 0.0004;
  costs.post = 0.00001;
  costs.ranks.assign(static_cast<std::size_t>(rank_count(layout)),
                     {0.0002, 0.0001, 0.0003, 0.0002});
  return costs;
}

RunTrace some_trace(int pp = 3, int dp = 2, int microbatches = 8) {
  const Layout layout = grid_layout(pp, dp, microbatches);
  return synthetic_trace(layout, "1f1b", some_costs(layout), 2);
}

struct Slice {
  double start = 0, end = 0;
};

/// Slices of one track are nested or consecutive.
void expect_nesting(std::vector<Slice> slices) {
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<double> open;
  for (const Slice& slice : slices) {
    while (!open.empty() && open.back() <= slice.start + 1e-6) open.pop_back();
    if (!open.empty()) {
      ASSERT_LE(slice.end, open.back() + 1e-3);
    }
    open.push_back(slice.end);
  }
}

TEST(Trace, IsWellFormedForPerfetto) {
  const RunTrace trace = some_trace();
  const nlohmann::json json = nlohmann::json::parse(to_chrome_trace(trace));
  std::map<std::pair<int, int>, std::vector<Slice>> tracks;
  std::map<std::pair<int, std::string>, int> actions;
  std::map<std::uint64_t, std::vector<std::pair<char, double>>> arrows;
  std::map<std::pair<int, std::string>, double> counters;
  std::set<int> named;
  std::size_t exchanges = 0;
  for (const nlohmann::json& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    const int process = event.at("pid");
    if (phase == "M" && event.at("name") == "process_name") named.insert(process);
    if (phase == "X") {
      const double start = event.at("ts"), duration = event.at("dur");
      ASSERT_GE(duration, 0);
      tracks[{process, event.at("tid")}].push_back({start, start + duration});
      if (event.at("cat") == "action") ++actions[{process, event.at("name")}];
    }
    if (phase == "s" || phase == "f") arrows[event.at("id")].emplace_back(phase[0], event.at("ts"));
    if (phase == "s") exchanges += event.at("name") == "gradients";
    if (phase == "C") {
      double& last = counters[{process, event.at("name")}];
      ASSERT_GE(event.at("ts").get<double>(), last);
      last = event.at("ts");
    }
  }
  EXPECT_EQ(named.size(), trace.plan.rows.size());
  for (const auto& [track, slices] : tracks) expect_nesting(slices);
  std::size_t sends = 0;
  for (int rank = 0; rank < trace.ranks(); ++rank)
    for (const Action& action : trace.plan.rows[static_cast<std::size_t>(rank)]) {
      // Once per step.
      EXPECT_EQ((actions[{rank, title(action, trace.layout)}]), 2) << to_text(action);
      sends += is_send(action.kind);
    }
  EXPECT_EQ(exchanges,
            2U * 3);  // per step: from the last owner of each of 3 stages to the other
  EXPECT_EQ(arrows.size(), 2 * sends + exchanges);
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2U);
    const std::size_t start = ends[0].first == 's' ? 0 : 1;
    EXPECT_EQ(ends[1 - start].first, 'f');
    EXPECT_LE(ends[start].second, ends[1 - start].second);
  }
  EXPECT_TRUE((actions.contains({0, "F 3 stage 0"})));
}

TEST(Trace, ReadsBackWhatWasWritten) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/trace.json";
  const RunTrace trace = some_trace();
  std::ofstream(path) << to_chrome_trace(trace);
  const RunTrace read = read_run_trace(path);
  EXPECT_EQ(read.run, trace.run);
  EXPECT_EQ(read.plan, trace.plan);
  EXPECT_EQ(to_chrome_trace(read), to_chrome_trace(trace));
}

TEST(Trace, WhatIsNoTraceIsRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/trace.json";
  EXPECT_THROW(read_run_trace(path), Error);
  const std::string good = to_chrome_trace(some_trace(2, 1));
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{20}, good.size() / 2, good.size() - 4}) {
    std::ofstream(path) << good.substr(0, length);
    EXPECT_THROW(read_run_trace(path), Error) << length;
  }
  for (const auto& [from, to] : {std::pair{"\"cat\":\"action\"", "\"cat\":\"actions\""},
                                 {"RECV_B", "RECV_X"},
                                 {"\"ts\":", "\"t\":"},
                                 {"\"step\":3}", "\"step\":4}"},
                                 {"\"cat\":\"step\"", "\"cat\":\"steps\""},
                                 {"\"layout\":\\[.*\\],\"frozen", "\"layout\":[],\"frozen"},
                                 {"\"stages\":\\[\\[0", "\"stages\":[[7"},
                                 {"\"frozen_units\":0", "\"frozen_units\":99"},
                                 {"\"saved_bytes\":\\[[0-9]*,", "\"saved_bytes\":["},
                                 {"\"plan\":\"0F0,", "\"plan\":\"0F1,"},
                                 {"\"of\":\"[0-9]*RECV_F0", "\"of\":\"1RECV_F9"},
                                 {"otherData", "data"}}) {
    std::ofstream(path) << std::regex_replace(good, std::regex(from), to,
                                              std::regex_constants::format_first_only);
    EXPECT_THROW(read_run_trace(path), Error) << from;
  }
}

TEST(TraceWindow, LiesAfterTheWarmUpAndWithinTheRun) {
  for (std::int64_t done = 0; done < 5; ++done)
    for (std::int64_t steps = 0; steps < 12; ++steps)
      for (int wanted = 0; wanted < 6; ++wanted) {
        const TraceWindow window = choose_window(done, steps, wanted, 100);
        const std::int64_t left = std::max<std::int64_t>(0, steps - done);
        EXPECT_EQ(window.count, std::min<std::int64_t>(wanted, left));
        if (window.count == 0) continue;
        EXPECT_GE(window.first, done + 1);
        EXPECT_LE(window.first + window.count - 1, steps);
        EXPECT_LE(window.first, done + 3);
      }
  EXPECT_EQ(choose_window(0, 100, 10, 200000).count, 2);
  EXPECT_EQ(choose_window(0, 100, 10, 5000000).count, 1);
}

TEST(TraceWindow, LiesWhereItIsAskedFor) {
  const auto firsts = [](std::int64_t done, const std::vector<std::int64_t>& at, std::int64_t every,
                         int count = 2) {
    LogSection log;
    log.trace = count;
    log.trace_at = at;
    log.trace_every = every;
    std::vector<std::pair<std::int64_t, int>> windows;
    for (const TraceWindow& window : trace_windows(done, 20, log, 100))
      windows.emplace_back(window.first, window.count);
    return windows;
  };
  using Windows = std::vector<std::pair<std::int64_t, int>>;
  EXPECT_EQ(firsts(0, {}, 0), (Windows{{3, 2}}));
  EXPECT_EQ(firsts(0, {}, 0, 0), Windows{});
  EXPECT_EQ(firsts(0, {11, 1, 20}, 0), (Windows{{1, 2}, {11, 2}, {20, 1}}));
  EXPECT_EQ(firsts(5, {11, 1}, 0), (Windows{{11, 2}}));
  EXPECT_EQ(firsts(5, {3}, 0), Windows{});
  EXPECT_EQ(firsts(0, {}, 8), (Windows{{8, 2}, {16, 2}}));
  EXPECT_EQ(firsts(8, {10}, 8), (Windows{{10, 2}, {16, 2}}));
  EXPECT_EQ(firsts(0, {7, 8}, 0), (Windows{{7, 2}}));  // 8 is within the first
  EXPECT_EQ(firsts(0, {}, 1).size(), 10U);
}

TEST(Trace, StagesCountFromZeroInEachReplica) {
  const RunTrace trace = some_trace(2, 2);
  EXPECT_EQ(title({Kind::F, 2, 5}, trace.layout), "F 5 stage 0");
  EXPECT_EQ(replicas_of(trace.layout), (std::vector<int>{0, 1}));
  const std::string json = to_chrome_trace(trace);
  EXPECT_NE(json.find(R"("name":"rank 3: replica 1, stage 1")"), std::string::npos);
  EXPECT_NE(json.find(R"("kind":"F","pipeline":1,"stage":0,"microbatch":4,"bytes":)"),
            std::string::npos);
  EXPECT_NE(json.find(R"("kind":"SEND_F","pipeline":1,"stage":0,"microbatch":4,"bytes":4096)"),
            std::string::npos);
}

TEST(Report, FiguresOfASimulatedRunAreThatSimulation) {
  const RunTrace trace = some_trace(3, 1, 12);
  const ReportMetrics metrics = compute_metrics(trace, {});
  EXPECT_NEAR(metrics.error(), 0, 0.01);
  const nlohmann::json json = to_json(trace, metrics);
  double bubble = 0;
  for (const nlohmann::json& rank : json.at("ranks")) {
    double sum = 0;
    for (const auto& [cause, share] : rank.at("causes").items()) sum += share.get<double>();
    EXPECT_NEAR(sum, rank.at("bubble").get<double>(), 1e-12);
    bubble += rank.at("bubble").get<double>() / trace.ranks();
    EXPECT_EQ(rank.at("peak").at("saved_bytes"), rank.at("predicted_peak").at("saved_bytes"));
  }
  EXPECT_NEAR(bubble, json.at("bubble").get<double>(), 1e-12);
}

TEST(Report, ATimelineStaysSmallForManyRanksAndMicrobatches) {
  const Layout layout = grid_layout(64, 1, 512);
  const RunTrace trace = synthetic_trace(layout, "1f1b", some_costs(layout), 1);
  const nlohmann::ordered_json json = recorded_timeline(trace, compute_metrics(trace, {}));
  EXPECT_LT(json.dump().size(), 8000000U);
  EXPECT_EQ(json.at("columns"), 1296);
}

}  // namespace
}  // namespace concertina
