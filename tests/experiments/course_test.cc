// Predictions of a run: the cost of moving state, epochs at each layout, and what is known of units
// that were seen only frozen.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "parallel/predict/cost_record.h"
#include "parallel/predict/move_costs.h"
#include "parallel/repartition/course.h"
#include "tests/parallel_plan/freeze_ladder.h"
#include "tests/planned.h"

namespace concertina {
namespace {

MovePlan plan_of(std::vector<MoveRound> rounds, std::size_t world) {
  return {std::move(rounds), std::vector<std::size_t>(world), std::vector<std::size_t>(world)};
}

TEST(MoveCosts, AreTheSlowestRanksOfEachRound) {
  // 1e6 weights 0 -> 1, 2 x 5e5 optimizer elements 1 -> 0 and 2 x 5e5 within rank 0.
  const MoveRound first{
      {0},
      {{0, false, 0, 1000000, 0, 1}, {0, true, 0, 500000, 1, 0}, {0, true, 500000, 1000000, 0, 0}}};
  const MoveRound second{{1}, {{1, false, 0, 250000, 1, 0}}};
  MachineModel machine;
  machine.ranks_per_host = 1;
  machine.remote = {.latency = 1e-3, .bandwidth = 1e6};
  machine.moves.copy_s_per_byte = 1e-9;
  machine.moves.block_s_per_byte = 2e-9;
  machine.moves.rebuild_s = 0.5;
  const MoveSeconds both = predict_move(plan_of({first, second}, 2), 2, machine);
  EXPECT_NEAR(both.links, 4.001 + 1.001, 1e-9);  // 4 MB each way at once, then 1 MB
  EXPECT_NEAR(both.copies, 4e-3, 1e-9);          // rank 0: 4 MB
  EXPECT_NEAR(both.blocks, 16e-3 + 2e-3, 1e-9);  // rank 0: 8 MB are new, then 1 MB
  EXPECT_NEAR(both.total(), both.move() + 0.5, 1e-12);

  const PairBytes bytes = pair_bytes(plan_of({first, second}, 2), 2);
  EXPECT_EQ(bytes, (PairBytes{{{0, 1}, 4e6}, {{1, 0}, 5e6}}));
  EXPECT_EQ(busiest_rank(bytes).most(), 5e6);
}

TEST(MoveCosts, CountAHostsLinkOnceAndCopiesWhereNoLinkIsKnown) {
  // Ranks 0 and 1 of one host each send 1 MB to ranks 2 and 3 of the other.
  const MoveRound round{
      {0}, {{0, false, 0, 250000, 0, 2}, {0, false, 0, 250000, 1, 3}, {0, false, 0, 500000, 0, 1}}};
  MachineModel machine;
  machine.moves.copy_s_per_byte = 1e-6;
  EXPECT_NEAR(predict_move(plan_of({round}, 4), 2, machine).links, 2, 1e-9) << "one host: 2 MB";
  machine.ranks_per_host = 2;
  machine.remote = {.bandwidth = 0.5e6};
  EXPECT_NEAR(predict_move(plan_of({round}, 4), 2, machine).links, 4, 1e-9) << "2 MB over one link";
  EXPECT_EQ(busiest_rank(PairBytes{}).most(), 0);
}

TEST(MoveCosts, TakeTheExchangeOfAHostForItsLinksAndWhatMovesTookBefore) {
  // 4 MB from rank 0 to rank 1 of one host, 2 MB back, 1 MB within rank 1.
  const MoveRound round{
      {0}, {{0, false, 0, 1000000, 0, 1}, {0, true, 0, 250000, 1, 0}, {0, false, 0, 250000, 1, 1}}};
  MachineModel machine;
  machine.local = {.latency = 5, .bandwidth = 1};
  machine.moves = {.exchange_s_per_byte = 1e-6, .copy_s_per_byte = 3e-6, .block_s_per_byte = 1e-6};
  const MoveSeconds one = predict_move(plan_of({round}, 2), 2, machine);
  EXPECT_NEAR(one.links, 4, 1e-9);
  EXPECT_NEAR(one.copies, 3, 1e-9);
  EXPECT_NEAR(one.blocks, 1 + 4, 1e-9) << "rank 1 copies first, then receives";
  machine.moves.move_factor = 2;
  machine.moves.rebuild_s = 7;
  EXPECT_NEAR(predict_move(plan_of({round}, 2), 2, machine).total(), 2 * one.move() + 7, 1e-9);
}

/// GPT with 12 layers on a pipeline of two ranks; F = I = W = 1 per layer, and all else is free.
struct EqualLayers {
  RunConfig config;
  Job job;
  ForecastInput forecast;
  std::vector<int> layers{0, 4, 7, 9, 10, 11, 11, 12, 12, 12};

  EqualLayers() {
    config.model = {.layers = 12, .width = 8, .heads = 1, .context = 8, .vocab = 2};
    config.batch = {.global = 4, .microbatches = 4};
    job = job_of(config);
    forecast.units.assign(static_cast<std::size_t>(job.units()), {0.5, 0.5, 0.5, 0});
    forecast.units.front() = forecast.units.back() = {};
    forecast.cache.share = 1;
  }

  /// Returns the input for `asked`, which must outlive it.
  CourseInput input_of(const Request& asked, const char* policy, bool caches) const {
    CourseInput input{.job = job,
                      .asked = asked,
                      .policy = lookup(layout_policies(), policy, "", ""),
                      .every = 1,
                      .forecast = forecast};
    if (!caches) input.forecast.cache = {};
    return input;
  }

  double seconds(const char* policy, const LayoutOptions& options, bool freezes, bool caches,
                 int dp = 1) const {
    const Request asked{.world = 2, .pp = 3 - dp, .dp = dp, .schedule = "gpipe"};
    CourseInput input = input_of(asked, policy, caches);
    input.options = options;
    const std::vector<int> none(layers.size());
    return seconds_of(predict_course(input, freezes ? layers : none, steps_of_epochs(40, 4, 10)));
  }

  double least(bool caches, bool keeps_grid) const {
    const Request asked{.world = 2, .pp = 2, .schedule = "gpipe"};
    const CourseInput input = input_of(asked, "none", caches);
    return least_seconds(input, predict_course(input, layers, steps_of_epochs(40, 4, 10)),
                         keeps_grid);
  }
};

TEST(Course, PlansReachTheClosedFormsOfTheLadder) {
  const EqualLayers run;
  const std::vector<double> course(run.layers.begin(), run.layers.end());
  const FreezeLadder ceilings =
      freeze_ladder(course, {.layers = 12, .stages = 2, .microbatches = 4});
  const LayoutOptions cuts{.depth = false, .replicas = false, .schedule = false},
      grid{.schedule = false};
  const double gpipe = run.seconds("none", {}, false, false);
  const double best = run.seconds("none", {}, false, false, 2);
  const auto check = [&](double seconds, const Rung& ceiling) {
    EXPECT_NEAR(gpipe / seconds, ceiling.over_gpipe, 0.01 * ceiling.over_gpipe);
    EXPECT_NEAR(best / seconds, ceiling.over_best, 0.01 * ceiling.over_best);
  };
  check(run.seconds("none", {}, true, false), ceilings.freeze);
  check(run.seconds("predicted", grid, true, false), ceilings.replicas);
  check(run.seconds("predicted", grid, true, true), ceilings.cache);
  EXPECT_NEAR(gpipe / run.least(false, true), ceilings.repack.over_gpipe, 0.01);
  EXPECT_NEAR(gpipe / run.least(false, false), ceilings.replicas.over_gpipe, 0.01);
  EXPECT_NEAR(gpipe / run.least(true, false), ceilings.cache.over_gpipe, 0.01);
  EXPECT_NEAR(ceilings.cache.over_gpipe, 4.17, 0.005);
  // Whole units cannot be divided such that both forwards and backwards are equal.
  const double repack = gpipe / run.seconds("predicted", cuts, true, false);
  EXPECT_LE(repack, ceilings.repack.over_gpipe);
  EXPECT_GE(repack, ceilings.freeze.over_gpipe);
}

TEST(Course, ABatchThatGrowsHasItsPlaceInTheEpochsAndNotInTheirSteps) {
  EqualLayers run;
  run.forecast.machine.norm_s_per_element = run.forecast.machine.update_s_per_element = 1e-4;
  const auto epochs = [&](bool grows) {
    const Request asked{.world = 2, .pp = 2, .schedule = "gpipe"};
    CourseInput input = run.input_of(asked, "pipetransformer", true);
    input.options.grows = grows;
    return predict_course(input, run.layers, steps_of_epochs(40, 4, 10));
  };
  const std::vector<CourseEpoch> constant = epochs(false), grown = epochs(true);
  EXPECT_EQ(grown.front().batches, 1);
  EXPECT_EQ(grown.back().batches, 2);
  EXPECT_LT(seconds_of(grown), seconds_of(constant));
  for (std::size_t e = 0; e < grown.size(); ++e) {
    EXPECT_EQ(grown[e].steps, constant[e].steps);
    EXPECT_EQ(grown[e].layout, constant[e].layout);
    EXPECT_EQ(constant[e].batches, 1);
    // One update replaces two steps.
    if (grown[e].batches == 1) {
      EXPECT_EQ(grown[e].step_s, constant[e].step_s);
    } else {
      EXPECT_LT(grown[e].step_s, constant[e].step_s);
    }
  }
}

TEST(Course, NoLayoutsAreFasterThanTheLeastSeconds) {
  std::mt19937 chance(47);
  const auto real = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(chance));
  };
  const auto whole = [&](int low, int high) {
    return std::uniform_int_distribution(low, high)(chance);
  };
  const char* schedules[] = {"gpipe", "1f1b", "zb-h1"};
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    RunConfig config;
    const int world = whole(1, 4), layers = whole(world, 6);
    config.model = {.layers = layers, .width = 8, .heads = 1, .context = 8, .vocab = 4};
    config.batch = {.global = 8, .microbatches = whole(0, 1) == 1 ? 8 : 4};
    config.numerics.leaves = 4;
    const Job job = job_of(config);
    CourseInput input{.job = job,
                      .asked = {.world = world, .pp = world, .schedule = schedules[whole(0, 2)]},
                      .policy = lookup(layout_policies(), "predicted", "", ""),
                      .every = whole(0, 3)};
    for (int unit = 0; unit < job.units(); ++unit)
      input.forecast.units.push_back(
          {real(.1, 10), real(.1, 10), real(.1, 10), real(.01, 1), real(.1, 10)});
    MachineModel& machine = input.forecast.machine;
    machine.load_s = whole(0, 1) * real(.01, 10);
    machine.norm_s_per_element = whole(0, 1) * real(1e-5, 1e-2);
    machine.update_s_per_element = whole(0, 1) * real(1e-5, 1e-2);
    machine.local = {.latency = whole(0, 1) * real(1e-3, 1), .bandwidth = real(1, 1e5)};
    for (int rank = 0; whole(0, 3) == 0 && rank < world; ++rank)
      machine.factors.push_back(real(.5, 2));
    input.options.least_gain = 0;
    input.options.schedule = false;
    input.options.grows = whole(0, 3) == 0;
    if (whole(0, 1) == 1) input.forecast.cache = {1, real(1e-4, 1)};
    const bool keeps_grid = whole(0, 1) == 1;
    input.options.depth = input.options.replicas = !keeps_grid;
    std::vector<int> course{0};
    while (course.size() < 4) course.push_back(whole(course.back(), layers));
    const std::vector<CourseEpoch> epochs = predict_course(input, course, {5, 4, 5, 4});
    EXPECT_LE(least_seconds(input, epochs, keeps_grid), seconds_of(epochs) * (1 + 1e-9));
  }
}

TEST(Course, FixedCostsLowerTheCeiling) {
  EqualLayers run;
  const PlannedJob plan = planned(run.config, 1);
  run.forecast.units.back() = {1, 1, 1, 0};  // the head costs as much as one of twelve layers
  EXPECT_NEAR(fixed_share(run.job, plan, run.forecast), 1.0 / 13, 1e-9);
  EXPECT_EQ(steps_of_epochs(10, 4, 3), (std::vector<std::int64_t>{3, 2, 3}));
}

TEST(CostRecord, PutsTogetherWhatWasSeenWithDifferentUnitsFrozen) {
  const RunConfig config;
  const Job job = job_of(config);
  const auto units = static_cast<std::size_t>(job.units());
  CostRecord record(job.model);
  std::vector<UnitSeconds> seen(units, {1, 2, 3, 0.5});
  record.add({seen, {}, 10}, 0);
  EXPECT_EQ(record.full(), seen);
  // Frozen units only run forward, and the head, which shares the embedding's matrix, has less W.
  std::vector<UnitSeconds> later(units, {4, 5, 6, 0.5});
  for (std::size_t u = 0; u < 3; ++u) later[u] = {0.75, 0, 0, 0};
  record.add({later, {}, 5}, 3);
  const std::vector<UnitSeconds> full = record.full();
  EXPECT_EQ(full[0], (UnitSeconds{1, 2, 3, 0.5, 0.75}));
  EXPECT_EQ(full[4], (UnitSeconds{4, 5, 6, 0.5, 3})) << "three quarters, like the frozen ones";
  EXPECT_EQ(with_frozen_units(job.model, full, 5)[4].forward, 3);
  EXPECT_GE(full.back().weight, 6);
  // Costs that no step has measured are derived from FLOPs.
  CostRecord frozen_only(job.model);
  frozen_only.add({later, {}, 5}, 3);
  EXPECT_GT(frozen_only.full()[1].weight, 0);
}

}  // namespace
}  // namespace concertina
