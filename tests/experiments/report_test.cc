// trace.json and the report: what is written can be read, opens where it should, and stays small.
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
#include "core/number_text.h"
#include "experiments/record/run_course.h"
#include "experiments/record/tracing.h"
#include "experiments/report/report_page.h"
#include "io/figure/page.h"
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

/// Slices of one track nest or follow each other.
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

TEST(Html, ShowsNoDurationBelowANanosecond) {
  EXPECT_EQ(duration_text(2.78e-17), "0");
  EXPECT_EQ(duration_text(2e-9), "0.002 µs");
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
      // Once a step.
      EXPECT_EQ((actions[{rank, title(action, trace.layout)}]), 2) << to_text(action);
      sends += is_send(action.kind);
    }
  EXPECT_EQ(exchanges,
            2U * 3);  // a step: from the last holder of each of 3 stages to the other one
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
  EXPECT_EQ(read.layout, trace.layout);
  EXPECT_EQ(read.plan, trace.plan);
  EXPECT_EQ(read.saved_bytes, trace.saved_bytes);
  ASSERT_EQ(read.steps.size(), trace.steps.size());
  for (std::size_t step = 0; step < read.steps.size(); ++step)
    for (std::size_t rank = 0; rank < read.plan.rows.size(); ++rank) {
      const StepRecord &a = read.steps[step][rank], &b = trace.steps[step][rank];
      EXPECT_EQ(a.step, b.step);
      ASSERT_EQ(a.waits.size(), b.waits.size());
      EXPECT_EQ(a.completions.size(), b.completions.size());
      ASSERT_EQ(a.memory.size(), b.memory.size());
      for (std::size_t i = 0; i < a.actions.size(); ++i) {
        EXPECT_NEAR(a.actions[i].start, b.actions[i].start, 2e-9);
        EXPECT_NEAR(a.actions[i].end, b.actions[i].end, 2e-9);
      }
      for (std::size_t i = 0; i < a.waits.size(); ++i) {
        EXPECT_EQ(a.waits[i].what, b.waits[i].what);
        EXPECT_EQ(a.waits[i].transfer, b.waits[i].transfer);
      }
      for (std::size_t i = 0; i < a.memory.size(); ++i) {
        EXPECT_EQ(a.memory[i].use.saved_bytes, b.memory[i].use.saved_bytes);
        EXPECT_EQ(a.memory[i].use.activations, b.memory[i].use.activations);
      }
    }
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

/// Every tag is closed in order, every attribute quoted: HTML that XML parsers take as well.
void expect_balanced(const std::string& page) {
  std::vector<std::string> open;
  std::string text = std::regex_replace(page, std::regex("<(style|script)>[^<]*</\\1>"), "");
  ASSERT_EQ(text.rfind("<!DOCTYPE html>", 0), 0U);
  text.erase(0, 15);
  for (std::size_t at = 0; (at = text.find_first_of("<>&", at)) != std::string::npos;) {
    if (text[at] == '&') {
      const std::string entity = text.substr(at, text.find(';', at) + 1 - at);
      ASSERT_TRUE(entity == "&amp;" || entity == "&lt;" || entity == "&gt;" || entity == "&quot;" ||
                  entity == "&#39;")
          << entity;
      ++at;
      continue;
    }
    ASSERT_EQ(text[at], '<') << text.substr(at, 60);
    const std::size_t end = text.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    ASSERT_EQ(std::ranges::count(tag, '"') % 2, 0) << tag;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ("/" + open.back(), tag);
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

std::string page_of(const RunTrace& trace) {
  RunFiles run{trace, {}, "[run]\nname = \"<&>\"\n", {}};
  for (int step = 1; step <= 5000; ++step)
    run.metrics.push_back({static_cast<double>(step), 5.0 / step, 1e4 + step % 7});
  return report_page(run, compute_figures(trace, {}));
}

TEST(Report, IsOneWellFormedFile) {
  const std::string page = page_of(some_trace());
  expect_balanced(page);
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_NE(page.find("F 3 stage 0"), std::string::npos);
  EXPECT_NE(page.find("<th>microbatch-stages</th>"), std::string::npos);
  EXPECT_NE(page.find(" microbatch-stages); "), std::string::npos);
  EXPECT_NE(page.find("a &lt;run&gt; &amp; &quot;more&quot;"), std::string::npos);
  EXPECT_LT(page.size(), 300000U);
}

/// What follows `text` on the page, up to the next tag.
std::string behind(const std::string& page, const std::string& text) {
  const std::size_t at = page.find(text);
  if (at == std::string::npos) return "";
  return page.substr(at + text.size(), page.find('<', at + text.size()) - at - text.size());
}

TEST(Report, RatesAndStepsAreOfTheWholeRun) {
  RunFiles run{some_trace(), {}, "[model]\nlayers = 3\n", {}};
  // 1,000 tokens a step: in 1 s, in 1 s, in 4 s. The mean of the three rates is 750.
  for (const double seconds : {1.0, 1.0, 4.0})
    run.metrics.push_back({.step = static_cast<double>(run.metrics.size() + 1),
                           .loss = 2,
                           .lr = 1e-3,
                           .grad_norm = 1,
                           .tokens_per_s = 1000 / seconds,
                           .step_ms = seconds * 1e3,
                           .bubble = seconds == 4 ? 0.5 : 0.2,
                           .time = "2026-11-22T02:15:09.042Z"});
  const StepTotals totals = total(run.metrics);
  EXPECT_DOUBLE_EQ(totals.tokens_per_s, 500);
  EXPECT_DOUBLE_EQ(totals.median_seconds, 1);
  EXPECT_DOUBLE_EQ(totals.bubble, 2.4 / 6);
  run.validations = {{2, 1.5, 4096, 440440}, {3, 1.4, 4096, 440440}, {3, 1.625, 440440, 440440}};
  run.launches = {nlohmann::json{{"command", {"concertina", "train", "<x>"}},
                                 {"version", "0.1"},
                                 {"commit", "abc"},
                                 {"hosts", {{{"host", "node7"}, {"ranks", "0-3"}}}}}};
  const std::string page = report_page(run, compute_figures(run.trace, {}));
  expect_balanced(page);
  EXPECT_EQ(behind(page, "<div class=\"tile\"><b>500</b><span>"),
            "tokens per second: all tokens over the seconds of all steps");
  EXPECT_NE(behind(page, "<div class=\"tile\"><b>1 s</b><span>").find("median of all 3; step 3"),
            std::string::npos);
  for (const char* text :
       {"held-out loss at step 3, per target, over 440,440 targets", "2026-11-22T02:15:09.042Z",
        "concertina train &lt;x&gt;", "node7", "commit abc", "host node7, ranks 0-3",
        "gradient norm", "learning rate", "held out 1.6250 over 440,440 of 440,440 targets",
        "class=\"save\" data-name=\"loss\"", "class=\"save\" data-name=\"timeline\"",
        "@media print", "gpt, 3 layers"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(page.find("MB"), std::string::npos);
  EXPECT_NE(page.find(" MiB"), std::string::npos);
}

TEST(Report, AnyFiguresMakeAPage) {
  const RunTrace trace = some_trace();
  const double none = std::nan(""), most = std::numeric_limits<double>::max();
  for (const std::vector<double>& losses :
       std::vector<std::vector<double>>{{8e6, 8e6, 8e6},
                                        {8e15, 8e15, 8e15},
                                        {1e300, -1e300, 3},
                                        {none, none, none},
                                        {2, none, 3},
                                        {most, -most, 0},
                                        {1, std::numeric_limits<double>::infinity(), 1},
                                        {0, 0, 0}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(losses, ", ")));
    RunFiles run{trace, {}, "not toml [", {}};
    for (const double loss : losses)
      run.metrics.push_back({.step = static_cast<double>(run.metrics.size() + 1),
                             .loss = loss,
                             .lr = loss,
                             .grad_norm = loss,
                             .tokens_per_s = loss,
                             .step_ms = loss,
                             .bubble = loss});
    const std::string page = report_page(run, compute_figures(trace, {}));
    expect_balanced(page);
    EXPECT_LT(page.size(), 300000U);
    EXPECT_EQ(page.find("nan"), std::string::npos);
  }
}

/// Lines of a run of 4 layers: 10 steps of 8 ms, then 10 of 4 ms with 2 layers frozen and another
/// layout, then 10 of 2 ms with 3 frozen. The first step after each change takes 10 ms more.
std::vector<MetricsPoint> changing_metrics() {
  std::vector<MetricsPoint> metrics;
  for (int step = 1; step <= 30; ++step) {
    const int part = (step - 1) / 10;
    metrics.push_back({.step = static_cast<double>(step),
                       .loss = 2,
                       .tokens_per_s = 1e4,
                       .step_ms = (step % 10 == 1 ? 10 : 0) + 8.0 / (1 << part),
                       .layout = part == 0 ? "pp2xdp1" : "pp1xdp2",
                       .frozen_units = part == 0   ? 0.0
                                       : part == 1 ? 5.0
                                                   : 7.0});
  }
  return metrics;
}

std::vector<nlohmann::json> changing_events() {
  std::vector<nlohmann::json> events;
  for (const char* line :
       {R"({"step":0,"event":"start"})",
        R"({"step":5,"event":"freeze","layers":0,"statistic":1,"why":"nothing yet"})",
        R"({"step":10,"event":"freeze","layers":2,"units_before":0,"units":5,"why":"a <pace>",
            "layout":"pp2xdp1","seconds":0.001,"moved_bytes":100,"extra_bytes":0})",
        R"({"step":10,"event":"layout","from":"pp2xdp1","to":"pp1xdp2","why":"replicas are faster",
            "predicted_step_s":0.0039,"predicted_step_before_s":0.006,"predicted_move_s":0.002,
            "seconds":0.003,"moved_bytes":1000})",
        R"({"step":15,"event":"layout outcome","layout":"pp1xdp2","measured_step_s":0.0041})",
        R"({"step":17,"event":"layout outcome","measured_step_s":0.0099})",
        R"({"step":20,"event":"freeze","layers":3,"units_before":5,"units":7,"layout":"pp1xdp2"})",
        R"({"step":20,"event":"layout","from":"pp1xdp2","to":"pp1xdp2","why":"it is the fastest",
            "predicted_step_s":0.0021})",
        R"({"step":25,"event":"layout","from":"pp1xdp2","to":"pp1xdp2","why":"still"})",
        R"({"step":28,"event":"freeze","layers":4,"units_before":7,"units":9})",
        R"({"step":28,"event":"refused","why":"rank 0 would need 9 GiB of 8 GiB"})"})
    events.push_back(nlohmann::json::parse(line));
  return events;
}

const std::vector<int> kEndsOfFourLayers{3, 5, 7, 9};

TEST(RunCourse, HasTheChanges) {
  const RunCourse course = course_of(changing_metrics(), changing_events(), {}, kEndsOfFourLayers);
  ASSERT_EQ(course.changes.size(), 2U);
  const RunChange& first = course.changes[0];
  EXPECT_EQ(first.step, 10);
  EXPECT_EQ(change_text(course, first), "0 -> 2 of 4 layers frozen, pp2xdp1 -> pp1xdp2");
  EXPECT_EQ(first.why, "a <pace>; replicas are faster");
  EXPECT_DOUBLE_EQ(first.cost, 0.004);
  EXPECT_DOUBLE_EQ(first.predicted_cost, 0.002);
  EXPECT_DOUBLE_EQ(first.moved_bytes, 1100);
  EXPECT_DOUBLE_EQ(first.predicted_step, 0.0039);
  EXPECT_DOUBLE_EQ(first.measured_step, 0.0041);
  const RunChange& second = course.changes[1];
  EXPECT_EQ(change_text(course, second), "2 -> 3 of 4 layers frozen, pp1xdp2");
  EXPECT_EQ(second.why, "it is the fastest");
  EXPECT_DOUBLE_EQ(second.predicted_step, 0.0021);
  EXPECT_TRUE(std::isnan(second.cost) && std::isnan(second.measured_step));
}

TEST(RunCourse, HasTheSpeedBetweenChanges) {
  const RunCourse course = course_of(changing_metrics(), changing_events(), {}, kEndsOfFourLayers);
  ASSERT_EQ(course.segments.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const RunSegment& segment = course.segments[static_cast<std::size_t>(i)];
    EXPECT_EQ(segment.first, 10 * i + 1);
    EXPECT_EQ(segment.last, 10 * i + 10);
    EXPECT_NEAR(segment.mean, 0.008 / (1 << i), 1e-12);
    EXPECT_NEAR(segment.speed_up, 1 << i, 1e-9);
    EXPECT_EQ(segment.frozen, i == 0 ? 0 : i + 1);
  }
  EXPECT_EQ(course.segment_after(course.changes[0]), &course.segments[1]);
  EXPECT_NEAR(course.speed_up(), 0.24 / (0.08 + 0.04 + 0.02 + 2 * 0.01 + 0.004), 1e-9);
  const std::string text = course_text(course);
  for (const char* part : {"2 changes, which took 4 ms\n", "after step 10: 0 -> 2 of 4 layers",
                           "took 4 ms, predicted 2 ms; steps of 4 ms, predicted 3.9 ms: 2.00x",
                           "changes included: 1.46x as fast as at first\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  const nlohmann::json json = nlohmann::json::parse(to_json(course).dump());
  EXPECT_TRUE(json.at("changes")[1].at("seconds").is_null());
  EXPECT_EQ(json.at("segments")[2].at("frozen_layers"), 3);
}

TEST(RunCourse, HasWhatWasDecidedBesides) {
  std::vector<nlohmann::json> events;
  for (const char* line :
       {R"({"step":4,"event":"freeze","layers":0,"skipped_by_stage":[0.25,0],
            "predicted_step_ratio":0.8})",
        R"({"step":8,"event":"freeze","layers":0,"skipped_by_stage":[0.25,0],
            "predicted_step_ratio":0.8})",
        R"({"step":9,"event":"cache","units":5,"on":true,"why":"a read is <shorter>"})",
        R"({"step":12,"event":"cache","units":7,"on":false,"why":"other bits"})",
        R"({"step":13,"event":"cache","units":"many"})"})
    events.push_back(nlohmann::json::parse(line));
  RunFiles run;
  run.metrics = changing_metrics();
  run.events = events;
  run.result = {{"cache",
                 {{"memory_hits", 3},
                  {"disk_hits", 0},
                  {"moved", 0},
                  {"misses", 1},
                  {"writes", 1},
                  {"faults", 0}}}};
  RunCourse course = course_of({}, events, {}, kEndsOfFourLayers);
  course.cache = course_of(run).cache;
  const std::string text = course_text(course);
  for (const char* part :
       {"after step 4: weight gradients left out: 25%, 0% of stages 0 to 1; predicted 0.80 of a "
        "step's time\nafter step 9: cached",
        "after step 9: cached activations of the first 2 layers: read (a read is <shorter>)\n",
        "after step 12: cached activations of the first 3 layers: not read (other bits)\n",
        "cached activations: 75% of 4 samples"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_EQ(to_json(course).at("notes").size(), 3U);
  const std::string section = changes_section(run, course);
  EXPECT_NE(section.find("a read is &lt;shorter&gt;"), std::string::npos) << section;
  EXPECT_EQ(changes_section(run, {}), "");
}

TEST(RunCourse, MarksItsChangesOnTheLoss) {
  RunFiles run;
  run.metrics = changing_metrics();
  const RunCourse course = course_of(run.metrics, changing_events(), {}, kEndsOfFourLayers);
  const auto marks = [&](const RunCourse& of) {
    const std::string text = training_section(run, of);
    std::size_t count = 0;
    for (std::size_t at = text.find("<title>after step"); at != std::string::npos;
         at = text.find("<title>after step", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(marks(course), 2U);
  EXPECT_EQ(marks({}), 0U);
}

TEST(RunCourse, CountsTheStepsOfLinesThatAreOfSeveral) {
  std::vector<nlohmann::json> lines;
  for (int step = 1; step <= 10; ++step)
    lines.push_back({{"step", step}, {"step_ms", 4}, {"tokens_per_s", 250}, {"layout", "pp2xdp1"}});
  for (int step = 12; step <= 30; step += 2)
    lines.push_back({{"step", step},
                     {"batches", 2},
                     {"step_ms", 2},
                     {"tokens_per_s", 500},
                     {"layout", "pp1xdp2"}});
  const std::vector<MetricsPoint> metrics = metrics_of(lines);
  const RunCourse course = course_of(metrics, {}, {}, {});
  ASSERT_EQ(course.segments.size(), 2U);
  EXPECT_EQ(course.segments[1].first, 11);
  EXPECT_EQ(course.segments[1].last, 30);
  EXPECT_EQ(course.segments[1].steps, 20);
  EXPECT_DOUBLE_EQ(course.segments[1].seconds, 0.04);
  EXPECT_DOUBLE_EQ(course.segments[1].speed_up, 2);
  EXPECT_DOUBLE_EQ(course.speed_up(), 30 * 4 / (10 * 4 + 20 * 2.0));
  const StepTotals totals = total(metrics);
  EXPECT_EQ(totals.steps, 30);
  EXPECT_DOUBLE_EQ(totals.seconds, 0.08);
  EXPECT_DOUBLE_EQ(totals.tokens_per_s, 375);
}

/// Lines of an older program have no frozen_units; a model that is not known has no layers; a
/// resume at another layout is no event.
TEST(RunCourse, IsMadeOfWhatTheLinesSay) {
  std::vector<MetricsPoint> metrics = changing_metrics();
  for (MetricsPoint& point : metrics) point.frozen_units = std::nan("");
  const RunCourse old = course_of(metrics, changing_events(), {}, {});
  ASSERT_EQ(old.segments.size(), 3U);
  EXPECT_EQ(change_text(old, old.changes[1]), "2 -> 3 layers frozen, pp1xdp2");
  EXPECT_EQ(old.segments[2].frozen, 3);
  const std::vector<nlohmann::json> launches{{{"from", 0}}, {{"from", 10}}};
  const RunCourse resumed = course_of(metrics, {}, launches, kEndsOfFourLayers);
  ASSERT_EQ(resumed.changes.size(), 1U);
  EXPECT_EQ(resumed.changes[0].why, "resumed by another launch");
  EXPECT_EQ(resumed.changes[0].layout, "pp1xdp2");
  ASSERT_EQ(resumed.segments.size(), 2U);
  EXPECT_EQ(resumed.segments[1].steps, 20);
  EXPECT_EQ(course_text(course_of({}, {}, {}, {})), "");
  // A change after the last step, and a line without figures.
  metrics.resize(20);
  const RunCourse last =
      course_of(metrics,
                {{{"event", "freeze"}, {"step", 20}, {"units_before", 0}, {"units", 3}},
                 {{"event", "layout"}}},
                {}, kEndsOfFourLayers);
  ASSERT_EQ(last.changes.size(), 2U);
  EXPECT_EQ(last.segment_after(last.changes[1]), nullptr);
}

TEST(Report, ShowsWhatChanged) {
  RunFiles run{some_trace(), changing_metrics(), "[model]\nlayers = 4\n", {}};
  EXPECT_EQ(page_of(some_trace()).find("<h2>Changes</h2>"), std::string::npos);
  run.events = changing_events();
  const std::string page = report_page(run, compute_figures(run.trace, {}));
  expect_balanced(page);
  for (const char* text : {"<h2>Changes</h2>", "<td>0 → 2</td><td>pp2xdp1 → pp1xdp2</td>",
                           "a &lt;pace&gt;; replicas are faster", "<th>frozen layers of 4</th>",
                           "<td>3.9 ms</td><td>4.1 ms</td></tr>", "<td>2.00×</td>",
                           "shaded: frozen layers, full height: all 4",
                           "<title>after step 20: 2 -&gt; 3 of 4 layers frozen, pp1xdp2</title>"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(Report, ShowsClassesAndTheBestModel) {
  RunFiles run{some_trace(), {}, "[model]\nlayers = 4\n", {}};
  const auto page_with = [&](const nlohmann::json& result) {
    run.result = result;
    const std::string page = report_page(run, compute_figures(run.trace, {}));
    expect_balanced(page);
    return page;
  };
  const std::string page = page_with({{"validation_confusion", {{40, 10}, {0, 0}}},
                                      {"validation_classes", {"<no>", "yes"}},
                                      {"best_by", "f1"},
                                      {"best_step", 40},
                                      {"best_figure", 0.8125},
                                      {"ended_by", "run.patience"}});
  for (const char* text : {"<h2>Classes</h2>", "&lt;no&gt; (50)", ">80</text>", "yes (0)", "0.8125",
                           "best f1, at step 40; without a better one the run ended"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  for (const nlohmann::json& other :
       {nlohmann::json(), nlohmann::json{{"validation_confusion", "?"}},
        nlohmann::json{{"validation_confusion", {{1}}}},
        nlohmann::json{{"validation_confusion", {{1, 2}, {3, "4"}}}},
        nlohmann::json{{"best_step", 1}}})
    EXPECT_EQ(page_with(other).find("<h2>Classes</h2>"), std::string::npos) << other.dump();
}

TEST(Report, AnyChangesMakeAPage) {
  const RunTrace trace = some_trace(2, 1);
  const ReportFigures figures = compute_figures(trace, {});
  EXPECT_TRUE(rc::check([&] {
    RunFiles run{trace, {}, "[model]\nlayers = 4\n", {}};
    const auto number = [] {
      return *rc::gen::element(0.0, 1.0, -3.0, 7.0, 1e300, 1e18, std::nan(""));
    };
    for (int i = *rc::gen::inRange(0, 12); i > 0; --i)
      run.metrics.push_back({.step = *rc::gen::element(10.0 - i, 1.0, 1e15),
                             .step_ms = number(),
                             .layout = *rc::gen::element<std::string>("", "pp2xdp1", "<&>"),
                             .frozen_units = number()});
    std::ranges::sort(run.metrics, {}, &MetricsPoint::step);  // as the file has them
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
      nlohmann::json event{
          {"event", *rc::gen::element<std::string>("freeze", "layout", "layout outcome")}};
      for (const char* key : {"step", "units_before", "units", "layers", "seconds", "moved_bytes",
                              "predicted_step_s", "measured_step_s", "from", "to"})
        if (*rc::gen::arbitrary<bool>()) event[key] = number();
      run.events.push_back(event);
    }
    const std::string page = report_page(run, figures);
    expect_balanced(page);
    const std::size_t nan = page.find("nan");
    RC_ASSERT((nan == std::string::npos ? "" : page.substr(nan - 200, 400)) == "");
    RC_ASSERT(!to_json(course_of(run)).dump().empty());
  }));
}

TEST(Report, StagesCountFromZeroInEachReplica) {
  const RunTrace trace = some_trace(2, 2);
  EXPECT_EQ(title({Kind::F, 2, 5}, trace.layout), "F 5 stage 0");
  EXPECT_EQ(replicas_of(trace.layout), (std::vector<int>{0, 1}));
  const std::string json = to_chrome_trace(trace);
  EXPECT_NE(json.find(R"("name":"rank 3: replica 1, stage 1")"), std::string::npos);
  EXPECT_NE(json.find(R"("kind":"F","pipeline":1,"stage":0,"microbatch":4,"bytes":)"),
            std::string::npos);
  EXPECT_NE(json.find(R"("kind":"SEND_F","pipeline":1,"stage":0,"microbatch":4,"bytes":4096)"),
            std::string::npos);
  const std::string page = page_of(trace);
  EXPECT_NE(page.find("F 5 stage 1, "), std::string::npos);
  EXPECT_EQ(page.find("stage 2, "), std::string::npos);
  EXPECT_EQ(page.find("first, last stage of a rank"), std::string::npos);
  const Layout chunks = grid_layout(2, 1, 8, 2);
  EXPECT_NE(page_of(synthetic_trace(chunks, "interleaved-1f1b", some_costs(chunks), 1))
                .find("first, last stage of a rank"),
            std::string::npos);
}

TEST(Report, StaysSmallForManyRanksAndMicrobatches) {
  const Layout layout = grid_layout(64, 1, 512);
  const std::string page = page_of(synthetic_trace(layout, "1f1b", some_costs(layout), 1));
  expect_balanced(page);
  EXPECT_LT(page.size(), 5000000U);
  EXPECT_NE(page.find("More than 8,000 boxes"), std::string::npos);
}

TEST(Report, FiguresOfASimulatedRunAreThatSimulation) {
  const RunTrace trace = some_trace(3, 1, 12);
  const ReportFigures figures = compute_figures(trace, {});
  EXPECT_NEAR(figures.error(), 0, 0.01);
  const nlohmann::json json = to_json(trace, figures);
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

TEST(Html, ASmoothedRateIsThatOfAllThatWasDone) {
  LineSeries series;
  for (int i = 0; i < 400; ++i) {
    series.x.push_back(i);
    series.y.push_back(i % 2 == 0 ? 100 : 300);
  }
  EXPECT_NEAR(html::smoothed(series, 100, true).y.back(), 150, 3);  // 2 / (1/100 + 1/300)
  EXPECT_NEAR(html::smoothed(series, 100).y.back(), 200, 3);
  series.y[200] = std::nan("");
  EXPECT_EQ(html::smoothed(series, 100).x.size(), 399U);
}

TEST(Html, EscapesAndNamesBytes) {
  EXPECT_EQ(html::escape("a<b & \"c\"\x01"), "a&lt;b &amp; &quot;c&quot;?");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(5.0 * 1024 * 1024), "5 MiB");
}

}  // namespace
}  // namespace concertina
