// Pictures of predicted steps: what they show is the simulator's own, on one scale, and readable.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "experiments/timeline/timeline_drawing.h"
#include "experiments/timeline/timeline_panel.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/fit_layout.h"
#include "tests/experiments/figure_shapes.h"

namespace concertina {
namespace {

TimelinePanel panel_of(const std::string& name, int ranks, int microbatches, Costs costs = {}) {
  const Folding folding = folding_of(find_schedule(name), 0);
  std::vector<UnitRange> units;
  for (int s = 0; s < ranks * folding.chunks; ++s) units.push_back({s, s + 1});
  const Grid grid{ranks, 1};
  const int leaves = std::min(microbatches, 8);
  const Layout layout = make_layout(units, grid, microbatches, leaves, folding);
  Plan plan = make_plan(layout, name, {.leaf_microbatches = microbatches / leaves});
  const Costs unit = unit_costs(layout);
  if (costs.stages.empty())
    costs.stages = unit.stages;
  else
    costs.stages.resize(unit.stages.size(), costs.stages.back());
  Timeline timeline = simulate(plan, layout, costs);
  return {name, std::move(plan), layout, std::move(costs), std::move(timeline)};
}

/// Stages that differ, slow messages, and an optimizer.
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

TEST(TimelineRows, BoxesAndWaitsFillEveryStep) {
  for (const std::string& name : schedule_names())
    for (const Costs& costs : {Costs{}, all_causes(4)}) {
      const TimelinePanel panel = panel_of(name, 4, 8, costs);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        const auto boxes = work_boxes(panel, rank);
        double waited = 0;
        for (const Interval& wait : waits_between(boxes, panel.timeline.makespan))
          waited += wait.end - wait.start;
        EXPECT_NEAR(waited, panel.timeline.makespan - panel.timeline.busy[rank], 1e-6)
            << name << " rank " << rank;
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
  // Two equal stages of which one is slower, with nothing else: the rest is imbalance.
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

TEST(TimelineDrawing, IsReadableAtAnySize) {
  for (const auto& [ranks, microbatches] : {std::pair{1, 1}, {2, 4}, {4, 8}, {8, 24}, {16, 32}})
    for (const double width : {3.25, 6.75}) {
      std::vector<TimelinePanel> panels;
      for (const std::string& name : schedule_names())
        if (ranks % find_schedule(name).value.rank_step == 0 && (ranks > 1 || name == "1f1b"))
          panels.push_back(panel_of(name, ranks, microbatches));
      const Drawing drawing = draw_timelines(panels, {}, width);
      EXPECT_EQ(drawing.width, width * 72);
      EXPECT_EQ(readable_fault(drawing), "");
      EXPECT_EQ(xml_fault(svg(drawing)), "");
      EXPECT_EQ(svg(drawing), svg(draw_timelines(panels, {}, width)));
    }
}

/// Right end of the widest box of this colour.
double right_end(const Drawing& drawing, Colour colour) {
  double right = 0;
  for (const Shape& shape : drawing.shapes)
    if (const auto* box = std::get_if<RectShape>(&shape))
      if (box->paint.fill == colour && !box->title.empty())
        right = std::max(right, box->x + box->width);
  return right;
}

TEST(TimelineDrawing, PanelsHaveOneScaleOfTime) {
  const TimelinePanel long_one = panel_of("gpipe", 4, 8), short_one = panel_of("zb-h1", 4, 8);
  const Colour weight{86, 180, 233};
  const Drawing both = draw_timelines({long_one, short_one}, {}, 6.75);
  const Drawing alone = draw_timelines({short_one}, {}, 6.75);
  const double right = both.width - 5;
  EXPECT_NEAR(right_end(alone, weight), right, 1);
  const double left = 20;
  EXPECT_NEAR(right_end(both, weight),
              left + (right - left) * short_one.timeline.makespan / long_one.timeline.makespan, 3);
}

TEST(TimelineDrawing, NumbersEveryMicrobatchOrNone) {
  const Drawing drawing = draw_timelines({panel_of("1f1b", 4, 8)}, {}, 6.75);
  std::multiset<std::string> numbers;
  for (const Shape& shape : drawing.shapes)
    if (const auto* text = std::get_if<TextShape>(&shape))
      if (text->anchor == Anchor::middle && text->text.size() == 1) numbers.insert(text->text);
  for (int m = 1; m < 5; ++m) EXPECT_EQ(numbers.count(std::to_string(m)), 8u) << m;
  EXPECT_TRUE(has_text(drawing, "makespan 33, bubble 27.3% (schedule)"));
  EXPECT_TRUE(has_text(drawing, "up to 4 microbatches"));
}

TEST(TimelineDrawing, ManyActionsAreDrawnByColumn) {
  const Drawing drawing = draw_timelines({panel_of("1f1b", 32, 256)}, {}, 6.75);
  EXPECT_TRUE(has_text(drawing, "More than 8,000 boxes"));
  EXPECT_LT(svg(drawing).size(), 1'500'000u);
  EXPECT_LT(drawing.shapes.size(), 1000u);
  EXPECT_EQ(readable_fault(drawing), "");
  const Drawing few = draw_timelines({panel_of("1f1b", 100, 4)}, {}, 6.75);
  EXPECT_TRUE(has_text(few, "At most 64 ranks are shown"));
  EXPECT_TRUE(has_text(few, "97"));
}

TEST(TimelineDrawing, APageNumbersBoxesAsItZooms) {
  TimelinePanel panel = panel_of("1f1b", 4, 64);
  panel.waits.resize(4);
  panel.waits[2] = {{.work = WorkKind::transfer, .start = 0, .end = 1.5, .what = "a message"}};
  const Drawing drawing = draw_timelines({panel}, {.in_page = true}, 6.75);
  std::set<int> zooms;
  for (const Shape& shape : drawing.shapes)
    if (const auto* text = std::get_if<TextShape>(&shape)) zooms.insert(text->zoom);
  EXPECT_EQ(zooms, (std::set<int>{1, 2, 4}));
  EXPECT_FALSE(has_text(drawing, "makespan"));
  EXPECT_TRUE(has_text(drawing, "waiting for a transfer"));
  const std::string text = svg_in_page(drawing);
  EXPECT_NE(text.find("fill=\"" + hex(colour_of(WorkKind::transfer)) + "\""), text.npos);
  EXPECT_NE(text.find("<title>a message, 0 to 1.5: 1.5</title>"), text.npos);
  EXPECT_NE(text.find("data-zoom=\"2\" display=\"none\""), text.npos);
}

TEST(TimelineDrawing, StepsThatTakeNoTimeAreDrawn) {
  Costs costs;
  costs.stages = {{0, 0, 0}};
  const Drawing drawing = draw_timelines({panel_of("1f1b", 2, 2, costs)}, {}, 6.75);
  EXPECT_EQ(xml_fault(svg(drawing)), "");
  EXPECT_TRUE(has_text(drawing, "makespan 0, bubble 0.0%"));
  EXPECT_FALSE(timeline_grid({panel_of("1f1b", 2, 2, costs)}, {}).empty());
}

TEST(TimelineGrid, HasACellPerUnitOfTime) {
  EXPECT_EQ(timeline_grid({panel_of("1f1b", 2, 2)}, {}),
            "1f1b: makespan 9, bubble 33.3%\n"
            "rank 0  F0 F1 .  .  B0--- .  B1---\n"
            "rank 1  .  F0 B0--- F1 B1--- .  .\n");
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
      EXPECT_TRUE(line.starts_with("a column is")) << line;
    }
  }
}

TEST(TimelineGrid, ColoursOnlyWhereAsked) {
  const TimelinePanel panel = panel_of("zb-h1", 2, 4);
  const std::string plain = timeline_grid({panel}, {}),
                    bright = timeline_grid({panel}, {.colour = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  std::string stripped;
  for (std::size_t i = 0; i < bright.size(); ++i)
    if (bright[i] == '\x1b')
      i = bright.find('m', i);
    else
      stripped += bright[i];
  EXPECT_EQ(stripped, plain);
  EXPECT_NE(bright, plain);
}

}  // namespace
}  // namespace concertina
