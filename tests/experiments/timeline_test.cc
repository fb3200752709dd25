// Pictures of predicted steps show the simulator's values; also tests steps as text.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "experiments/timeline/timeline_rows.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/fit_layout.h"

namespace concertina {
namespace {

TimelinePanel panel_of(const std::string& name, int ranks, int microbatches, Costs costs = {}) {
  const Folding folding = folding_of(find_schedule(name), 0);
  const Grid grid{ranks, 1};
  const int leaves = std::min(microbatches, 8);
  const Layout layout =
      make_layout(single_units(ranks * folding.chunks), grid, microbatches, leaves, folding);
  Plan plan = make_plan(layout, name, {.leaf_microbatches = microbatches / leaves});
  const Costs unit = unit_costs(layout);
  if (costs.stages.empty())
    costs.stages = unit.stages;
  else
    costs.stages.resize(unit.stages.size(), costs.stages.back());
  Timeline timeline = simulate(plan, layout, costs);
  return {name, std::move(plan), layout, std::move(costs), std::move(timeline)};
}

/// Different stages, slow messages, and an optimizer.
Costs all_causes(int ranks) {
  Costs costs;
  costs.stages = {{1, 1, 1}, {1.5, 1, 1}, {1, 2, 1}, {1, 1, 1}};
  costs.boundary_bytes = 10;
  costs.local.latency = 0.25;
  costs.local.bandwidth = 50;
  costs.ranks.assign(static_cast<std::size_t>(ranks), {.norm = 0.1, .update = 0.4, .refresh = 0.2});
  costs.ranks[0].update = 1;
  return costs;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& entry : schedules())
    if (!entry.value.searched) names.emplace_back(entry.name);
  return names;
}

TEST(TimelineRows, BoxesAreWhatRanksDo) {
  for (const std::string& name : schedule_names())
    for (const Costs& costs : {Costs{}, all_causes(4)}) {
      const TimelinePanel panel = panel_of(name, 4, 8, costs);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const auto boxes = work_boxes(panel, rank);
        double busy = 0;
        for (const WorkBox& box : boxes)
          if (box.part != 2) busy += box.end - box.start;
        EXPECT_NEAR(busy, panel.timeline.busy[rank], 1e-6) << name << " rank " << rank;
        std::size_t numbered = 0;
        for (const WorkBox& box : boxes) numbered += box.microbatch >= 0;
        EXPECT_EQ(numbered, std::ranges::count_if(panel.plan.rows[rank], [](const Action& a) {
                    return is_compute(a.kind);
                  }));
      }
    }
}

TEST(TimelineRows, CausesAddUpToTheBubble) {
  for (const std::string& name : schedule_names()) {
    const TimelinePanel plain = panel_of(name, 4, 8);
    const IdleShares only = idle_shares(plain);
    EXPECT_NEAR(only.schedule, plain.timeline.mean_bubble, 1e-9) << name;
    EXPECT_NEAR(only.imbalance + only.transfer + only.exchange, 0, 1e-9) << name;

    const TimelinePanel full = panel_of(name, 4, 8, all_causes(4));
    const IdleShares idle = idle_shares(full);
    EXPECT_NEAR(idle.schedule + idle.imbalance + idle.transfer + idle.exchange,
                full.timeline.mean_bubble, 1e-9)
        << name;
    EXPECT_GT(idle.transfer, 0) << name;
    EXPECT_GT(idle.exchange, 0) << name;
  }
  // Two stages, one of them slower, and nothing else: the rest is imbalance.
  Costs uneven;
  uneven.stages = {{1, 1, 1}, {2, 2, 2}};
  const IdleShares idle = idle_shares(panel_of("1f1b", 2, 8, uneven));
  EXPECT_GT(idle.imbalance, 0.1);
  EXPECT_NEAR(idle.transfer + idle.exchange, 0, 1e-12);
}

TEST(TimelineRows, SavedActivationsPeakWhereTheSimulatorSays) {
  for (const std::string& name : schedule_names()) {
    TimelinePanel panel = panel_of(name, 4, 8);
    for (StageCosts& stage : panel.costs.stages) stage.saved_bytes = 1000;
    const double stages = static_cast<double>(panel.layout.pipelines[0].stages.size()) / 4;
    for (std::size_t rank = 0; rank < 4; ++rank)
      for (const bool bytes : {false, true}) {
        double peak = 0;
        const auto levels = saved_levels(panel, rank, bytes);
        for (const SavedLevel& level : levels) peak = std::max(peak, level.amount);
        EXPECT_NEAR(peak, panel.timeline.peak_activations[rank] * (bytes ? 1000 : 1 / stages), 1e-9)
            << name;
        EXPECT_NEAR(levels.back().amount, 0, 1e-9) << name;
      }
  }
}

TEST(TimelineRows, SpreadRanksHaveBothEnds) {
  EXPECT_EQ(spread_ranks(3, 64), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(spread_ranks(9, 3), (std::vector<std::size_t>{0, 4, 8}));
  EXPECT_EQ(spread_ranks(1, 64), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(spread_ranks(0, 64).empty());
}

TEST(TimelineJson, HasEveryActionUpToABound) {
  const TimelinePanel few = panel_of("zb-v", 4, 8, all_causes(4));
  const nlohmann::ordered_json json = timelines_json({few}, 6.75);
  EXPECT_FALSE(json.contains("columns"));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto boxes = work_boxes(few, rank);
    EXPECT_EQ(json["panels"][0]["rows"][rank]["boxes"].size(), boxes.size());
    EXPECT_EQ(json["panels"][0]["rows"][rank]["boxes"][0],
              nlohmann::json::array({"forward", boxes[0].start, boxes[0].end,
                                     "F 0 stage " + std::to_string(boxes[0].stage), 0, 0, 0}));
  }
  const nlohmann::ordered_json many = timelines_json({panel_of("1f1b", 100, 256)}, 6.75);
  EXPECT_EQ(many["columns"], 972);
  EXPECT_EQ(many["panels"][0]["rows"].size(), 64u);
  EXPECT_LT(many.dump().size(), 4'000'000u);
}

TEST(TimelineJson, HasTheActivationsOfTheRankThatSavesMost) {
  const nlohmann::ordered_json saved = most_saved_json(panel_of("1f1b", 4, 8), false);
  double most = 0;
  for (const auto& level : saved["levels"]) most = std::max(most, level[1].get<double>());
  EXPECT_EQ(saved["rank"], 0);
  EXPECT_EQ(most, 4);
}

TEST(TimelineGrid, HasACellPerUnitOfTime) {
  EXPECT_EQ(timeline_grid({panel_of("1f1b", 2, 2)}, {}),
            "1f1b: makespan 9, bubble 33.3%\n"
            "rank 0  F0 F1 .  .  B0--- .  B1---\n"
            "rank 1  .  F0 B0--- F1 B1--- .  .\n");
}

TEST(TimelineGrid, ShowsStepsThatTakeNoTime) {
  Costs costs;
  costs.stages = {{0, 0, 0}};
  EXPECT_FALSE(timeline_grid({panel_of("1f1b", 2, 2, costs)}, {}).empty());
}

TEST(TimelineGrid, FitsTheTerminal) {
  const TimelinePanel panel = panel_of("zb-v", 4, 16);
  for (const std::size_t width : {20u, 60u, 100u, 200u}) {
    std::istringstream lines(timeline_grid({panel}, {.width = width}));
    std::string line;
    std::getline(lines, line);  // the name
    for (int rank = 0; rank < 4; ++rank) {
      std::getline(lines, line);
      EXPECT_LE(line.size(), width);
      EXPECT_TRUE(line.starts_with("rank " + std::to_string(rank))) << line;
    }
    if (width < 100) {
      std::getline(lines, line);
      EXPECT_TRUE(line.starts_with("one column is")) << line;
    }
  }
}

TEST(TimelineGrid, ColorsOnlyWhereAsked) {
  const TimelinePanel panel = panel_of("zb-h1", 2, 4);
  const std::string plain = timeline_grid({panel}, {}),
                    bright = timeline_grid({panel}, {.color = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::regex_replace(bright, std::regex("\x1b[^m]*m"), ""), plain);
  EXPECT_NE(bright, plain);
}

}  // namespace
}  // namespace concertina
