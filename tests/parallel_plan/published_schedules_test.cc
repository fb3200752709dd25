// Compares schedules with their papers' claims, with each other and row by row.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "parallel/generate/building_block.h"
#include "parallel/generate/passes.h"
#include "parallel/generate/weight_fill.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/simulate.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

/// For F = I = W = 1 and free transfers; in units of a rank's share of one microbatch.
struct Metrics {
  double span = 0;      // largest idle time between a rank's first and last action
  double makespan = 0;  // idle time over the whole step
  double peak = 0;      // largest saved; a stage is 1/v of a rank's share
};

Metrics metrics(std::string_view name, int p, int m, int v = 0) {
  const Entry<Schedule>& schedule = find_schedule(name);
  const Layout layout = folded(schedule, p, m, v);
  const Plan plan = make_plan(layout, name, {.transfers = false, .reduction = false});
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
  const double chunks = folding_of(schedule, v).chunks;
  Metrics result;
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank) {
    const double span = timeline.rows[rank].back().end - timeline.rows[rank].front().start;
    result.span = std::max(result.span, (span - timeline.busy[rank]) / chunks);
    result.peak = std::max(result.peak, timeline.peak_activations[rank] / chunks);
  }
  result.makespan = (timeline.makespan - timeline.busy[0]) / chunks;
  return result;
}

template <class Visit>
void each_size(Visit visit) {
  for (const int p : {2, 4, 8})
    for (const int m : {p, 2 * p, 4 * p}) {
      SCOPED_TRACE(fmt::format("p={} m={}", p, m));
      visit(p, m);
    }
}

TEST(Published, BubblesOfTheFlushSchedulesAreThoseOfTheWholeStep) {
  each_size([](int p, int m) {
    for (const std::string_view name : {"gpipe", "1f1b"})
      EXPECT_DOUBLE_EQ(metrics(name, p, m).makespan, 3 * (p - 1)) << name;
    for (const int v : {1, 2, 4})
      for (const std::string_view name : {"interleaved-1f1b", "looped-bfs"})
        EXPECT_DOUBLE_EQ(metrics(name, p, m, v).makespan, 3.0 * (p - 1) / v) << name;
    EXPECT_DOUBLE_EQ(metrics("zb-h1", p, m).makespan, p - 1);
  });
}

TEST(Published, ZeroBubbleSchedulesAgainst1F1B) {
  each_size([](int p, int m) {
    const Metrics base = metrics("1f1b", p, m);
    EXPECT_DOUBLE_EQ(metrics("zb-h1", p, m).span, base.span / 3);
    EXPECT_EQ(metrics("zb-h1", p, m).peak, base.peak);
    if (m < 2 * p) return;
    EXPECT_EQ(metrics("zb-h2", p, m).span, 0);
    EXPECT_EQ(metrics("zb-h2", p, m).peak, 2 * p - 1);
    EXPECT_EQ(metrics("zb-v", p, m).span, 0);
    EXPECT_EQ(metrics("zb-v", p, m).peak, base.peak);
    // The last rank cannot start before p - 1 forwards have finished: no schedule is shorter.
    EXPECT_DOUBLE_EQ(metrics("zb-h2", p, m).makespan, p - 1);
    EXPECT_DOUBLE_EQ(metrics("zb-v", p, m).makespan, (p - 1) / 2.0);
  });
}

TEST(Published, ControllableMemoryAgainst1F1B) {
  each_size([](int p, int m) {
    const Metrics base = metrics("1f1b", p, m), half = metrics("v-half", p, m),
                  least = metrics("v-min", p, m);
    EXPECT_LE(half.span, base.span / 2);
    EXPECT_LE(half.peak, base.peak / 2 + 1);
    EXPECT_LE(least.span, base.span * 2 / 3);
    EXPECT_LE(least.peak, (base.peak + 4) / 3);
  });
}

TEST(Published, BidirectionalSchedulesAgainst1F1B) {
  each_size([](int p, int m) {
    const Metrics base = metrics("1f1b", p, m), chimera = metrics("chimera", p, m);
    EXPECT_LE(chimera.span, base.span * 2 / 3);
    EXPECT_LE(chimera.peak, p + 1);
    if (m < 2 * p) return;
    EXPECT_LE(metrics("dualpipe", p, m).span, 2.0 * (p / 2 - 1));  // (p/2 - 1)(F&B + B - 3W)
    EXPECT_EQ(metrics("dualpipe", p, m).peak, p + 1);
    EXPECT_LE(metrics("dualpipe-v", p, m).span, 2.0 * (p - 1) / 2);
    EXPECT_EQ(metrics("dualpipe-v", p, m).peak, p + 0.5);
  });
}

TEST(Published, MoreWavesHaveLessBubble) {
  for (const int p : {2, 4, 8}) {
    const double base = metrics("1f1b", p, p).span;
    for (const int waves : {1, 2, 3})
      EXPECT_LE(metrics("hanayo", p, p, 2 * waves).span, base / waves) << p << " " << waves;
  }
}

std::string rows_of(std::string_view name, int p, int m, int v = 0) {
  const Layout layout = folded(find_schedule(name), p, m, v);
  return to_text(make_plan(layout, name, {.transfers = false, .reduction = false}));
}

TEST(Published, RowsAreThoseOfTheRules) {
  EXPECT_EQ(rows_of("interleaved-1f1b", 2, 4, 2),  // Narayanan et al. 2021, section 2.2.2
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
  EXPECT_EQ(rows_of("looped-bfs", 2, 2, 2),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
            "1F0,1F1,3F0,3F1,3B0,3B1,1B0,1B1\n");
  EXPECT_EQ(rows_of("zb-h1", 2, 3),
            "0F0,0F1,0B0,0F2,0B1,0B2\n"
            "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2\n");
  EXPECT_EQ(rows_of("chimera", 4, 4),  // Li & Hoefler 2021, figure 3
            "0F0,0F1,7F2,7B2,7F3,7B3,0B0,0B1\n"
            "1F0,6F2,1F1,6F3,6B2,1B0,6B3,1B1\n"
            "5F2,2F0,5F3,2F1,2B0,5B2,2B1,5B3\n"
            "4F2,4F3,3F0,3B0,3F1,3B1,4B2,4B3\n");
}

/// The steady state of each block: no rank is idle, and memory does not grow.
TEST(BuildingBlocks, KeepARankBusyAndItsMemoryBounded) {
  for (const BuildingBlock& block :
       {BuildingBlock{}, BuildingBlock{1, 2, 1, 2}, BuildingBlock{1, 5, 1, 5}}) {
    const int reach = block.forward_down + block.forward_up + block.backward_up +
                      block.backward_down;  // 6 steps per microbatch, for both chunks
    for (const int p : {1, 2, 3, 5, 6, 8, 12}) {
      const Layout layout = folded(find_schedule("zb-v"), p, 6 * p);
      const PipelineShape shape{p, 6 * p, {}};
      for (const std::vector<Action>& row : repeat_block(shape, block)) {
        int saved = 0, peak = 0;
        for (const Action& action : row)
          peak = std::max(peak, saved += action.kind == Kind::F ? 1 : -1);
        EXPECT_LE(peak, reach * p / 6 + 2) << p;
        EXPECT_EQ(saved, 0);
      }
    }
  }
}

TEST(WeightFill, KeepsItsLimitAndTheOrderOfForwardsAndInputGradients) {
  for (const int p : {2, 4, 7})
    for (const int lead : {1, 2})
      for (const int extra : {0, 1, p}) {
        PipelineShape shape{p, 3 * p, {}};
        for (int s = 0; s < p; ++s) shape.stage_rank.push_back(s);
        const int limit = lead * (p - 1) + 1 + extra;
        const Rows order = one_f_one_b(p, 3 * p, lead, Kind::I);
        Rows rows = fill_weights(shape, order, {.limit = limit});
        for (int rank = 0; rank < p; ++rank) {
          EXPECT_LE(peak_saved(rows[rank], [](int) { return std::size_t{1}; }),
                    static_cast<std::size_t>(limit));
          EXPECT_EQ(std::erase_if(rows[rank], [](const Action& a) { return a.kind == Kind::W; }),
                    static_cast<std::size_t>(3 * p));
        }
        EXPECT_EQ(rows, order);
      }
}

}  // namespace
}  // namespace concertina
