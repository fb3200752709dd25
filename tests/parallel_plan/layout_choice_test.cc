// Compares the choice of the policy `predicted` with all layouts of a small world, and its
// foresight with deciding without foresight: all by its own predictions.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/index.h"
#include "parallel/repartition/course.h"

namespace concertina {
namespace {

using Cuts = std::vector<UnitRange>;

/// Considers everything, however long that takes.
constexpr LayoutOptions kThorough{.least_gain = 0, .most_share = 1e9};

/// Returns all ways to cut `units` units into `parts` stages.
std::vector<Cuts> all_cuts(int units, int parts, int first = 0) {
  if (parts == 1) return {{{first, units}}};
  std::vector<Cuts> all;
  for (int last = first + 1; last <= units - parts + 1; ++last)
    for (Cuts& rest : all_cuts(units, parts - 1, last)) {
      rest.insert(rest.begin(), {first, last});
      all.push_back(std::move(rest));
    }
  return all;
}

/// A job, a machine and a layout with irregular values.
struct Case {
  Job job;
  Request asked;
  int frozen = 0;
  ForecastInput input;
};

/// `uneven`: each rank has its own factor.
Case random_case(std::mt19937& random, bool uneven = false) {
  const auto real = [&](double from, double to) {
    return std::exp(std::uniform_real_distribution(std::log(from), std::log(to))(random));
  };
  const int units = 3 + static_cast<int>(random() % 3),
            world = 2 + static_cast<int>(random() % (uneven ? 2 : 3));
  Case one;
  ModelSpec& model = one.job.model;
  model.samples = 1;
  model.boundary_bytes = static_cast<std::size_t>(real(1e3, 1e5));
  for (int u = 0; u < units; ++u) {
    const auto rows = static_cast<std::int64_t>(real(20, 2000));
    model.units.push_back({.name = fmt::format("{:03}", u),
                           .parameters = {{"weight", {rows, 64}, false, {}, ""}},
                           .cost = {.forward_flops = 1, .input_flops = 1, .weight_flops = 1}});
    model.layer_ends.push_back(u + 1);
    one.input.units.push_back({1e-3 * real(.2, 5), 1e-3 * real(.2, 5), 1e-3 * real(.2, 5), 0});
  }
  model.layer_ends.pop_back();
  one.job.microbatches = one.job.leaves = 4;
  MachineModel& machine = one.input.machine;
  const double bandwidths[] = {0, 1e9, 1e7, 1e6};
  if (const double bandwidth = bandwidths[random() % 4]; bandwidth > 0)
    machine.local = {.latency = 1e-5, .bandwidth = bandwidth};
  machine.moves.rebuild_s = real(1e-3, 1e-1);
  one.input.kinds = 2;
  one.asked = {.world = world, .pp = std::min(world, units), .schedule = "1f1b"};
  one.asked.spare = world - one.asked.pp;
  one.frozen = static_cast<int>(random() % static_cast<unsigned>(units));
  for (int rank = 0; uneven && rank < world; ++rank) machine.factors.push_back(real(.5, 4));
  return one;
}

/// Finds the fastest of all layouts.
class Exhaustive {
 public:
  Exhaustive(const Case& one, const LayoutForecast& forecast) : case_(one), forecast_(forecast) {}

  double best() {
    for (const Entry<Schedule>& schedule : schedules()) {
      if (schedule.value.searched) continue;
      Folding folding;
      try {
        folding = folding_of(schedule, 0);
      } catch (const Error&) {
        continue;
      }
      for (int pp = 1; pp <= world() && pp * folding.chunks <= units(); ++pp) {
        if (pp == 1 && schedule.name != "1f1b") continue;  // all schedules are equal
        for (const Cuts& cuts : all_cuts(units(), pp * folding.chunks)) {
          for (int dp = 1; dp * pp <= world(); ++dp)
            if (dp * folding.pipelines() <= leaves())
              take(schedule, make_layout(cuts, {pp, dp}, leaves(), leaves(), folding), pp * dp);
          if (folding.chunks == 1 && folding.placement == Placement::loop)
            unlike(schedule, pp, cuts);
        }
      }
    }
    return best_;
  }
  int tried() const { return tried_; }
  const std::string& what() const { return what_; }

 private:
  int world() const { return case_.asked.world; }
  int units() const { return case_.job.units(); }
  int leaves() const { return case_.job.leaves; }
  bool uneven() const { return !case_.input.machine.factors.empty(); }

  void unlike(const Entry<Schedule>& schedule, int pp, const Cuts& cuts) {
    for (int less = 1; less < pp + (uneven() ? 1 : 0); ++less)
      for (const Cuts& other : all_cuts(units(), less))
        for (int dp = 1; dp * pp + less <= world(); ++dp)
          for (int others = 1; dp * pp + others * less <= world(); ++others)
            for (int mine = dp; mine <= leaves() - others; ++mine) {
              Layout layout = make_layout(cuts, {pp, dp}, mine, mine);
              for (Pipeline pipeline :
                   make_layout(other, {less, others}, leaves() - mine, leaves() - mine).pipelines) {
                for (StagePlacement& stage : pipeline.stages) stage.rank += pp * dp;
                pipeline.first_microbatch += mine;
                pipeline.last_microbatch += mine;
                layout.pipelines.push_back(pipeline);
              }
              take(schedule, layout, pp * dp + less * others);
            }
  }

  /// Tries the ranks in every order, if they differ.
  void take(const Entry<Schedule>& schedule, const Layout& layout, int ranks) {
    std::vector<int> order(at(world()));
    std::iota(order.begin(), order.end(), 0);
    do {
      Layout other = layout;
      for (Pipeline& pipeline : other.pipelines)
        for (StagePlacement& stage : pipeline.stages) stage.rank = order[at(stage.rank)];
      take_in_order(schedule, std::move(other), ranks);
    } while (uneven() && std::ranges::next_permutation(order).found);
  }

  void take_in_order(const Entry<Schedule>& schedule, Layout layout, int ranks) {
    Request request = case_.asked;
    request.pp = 0;
    request.schedule = schedule.name;
    request.frozen_units = case_.frozen;
    request.spare = world() - ranks;
    request.layout = std::move(layout);
    try {
      const Assignment made = assign(case_.job, request);
      ++tried_;
      const double seconds = forecast_.step_seconds(made);
      if (seconds >= best_) return;
      best_ = seconds;
      what_ = fmt::format("{} {}", describe(request, made), to_toml(made.layout));
    } catch (const Error& error) {  // the schedule does not support it
      EXPECT_EQ(error.code(), Exit::bad_input) << error.message();
    }
  }

  const Case& case_;
  const LayoutForecast& forecast_;
  double best_ = 1e18;
  int tried_ = 0;
  std::string what_;
};

const LayoutPolicy& predicted() {
  return lookup(layout_policies(), "predicted", "layout policy", "elastic.policy");
}

/// Counts of choices over some cases.
struct Chosen {
  int idle = 0, unlike = 0;  // with spare ranks; with replicas that differ in depth or share
};

Chosen expect_the_best(int cases, bool uneven) {
  std::mt19937 random(1);
  double worst = 1;
  int tried = 0;
  Chosen chosen;
  for (int number = 0; number < cases; ++number) {
    const Case one = random_case(random, uneven);
    Request asked = one.asked;
    const Assignment start = assign(one.job, asked);
    asked.layout = start.layout;
    asked.frozen_units = one.frozen;
    const Assignment now = assign(one.job, asked);
    const LayoutForecast forecast(one.job, now, one.input);
    const LayoutDecision decision = predicted().decide({.job = one.job,
                                                        .asked = asked,
                                                        .now = now,
                                                        .steps_left = 1'000'000,
                                                        .options = kThorough,
                                                        .forecast = forecast,
                                                        .start = start_of(asked, start)});
    const double seconds = decision.next ? decision.next->step_seconds : decision.step_seconds;
    const Assignment& next = decision.next ? decision.next->assignment : now;
    Exhaustive all(one, forecast);
    const double gap = seconds / all.best();
    worst = std::max(worst, gap);
    tried += all.tried();
    EXPECT_LE(forecast.least_seconds(one.frozen, next.world), all.best() * (1 + 1e-9));
    chosen.idle += std::ssize(next.working) < next.world ? 1 : 0;
    chosen.unlike += describe(asked, next).find('+') != std::string::npos ? 1 : 0;
    EXPECT_LE(gap, 1.01) << "case " << number << ": "
                         << describe(decision.next ? decision.next->request : asked, next)
                         << to_toml(next.layout) << " instead of " << all.what();
  }
  std::printf(
      "%d cases, %d layouts: at most %.3f times the best; %d leave ranks idle, %d have replicas "
      "that differ\n",
      cases, tried, worst, chosen.idle, chosen.unlike);
  return chosen;
}

TEST(LayoutChoice, IsTheBestOfAllLayoutsOfASmallWorld) {
  const Chosen chosen = expect_the_best(200, /*uneven=*/false);
  EXPECT_GT(chosen.idle, 10);
  EXPECT_GT(chosen.unlike, 0);
}

TEST(LayoutChoice, IsTheBestOfAllLayoutsWhereRanksDiffer) {
  const Chosen chosen = expect_the_best(200, /*uneven=*/true);
  EXPECT_GT(chosen.idle, 10);
  EXPECT_GT(chosen.unlike, 10);
}

/// Calls `predicted` with only the present costs.
LayoutDecision decide_greedily(const LayoutView& view) {
  LayoutView blind = view;
  blind.ahead.clear();
  return predicted().decide(blind);
}

std::vector<CourseEpoch> course(const Case& one, const std::vector<int>& layers,
                                const std::vector<std::int64_t>& steps, bool foresees) {
  LayoutPolicy policy = predicted();
  if (!foresees) policy.decide = decide_greedily;
  return predict_course({.job = one.job,
                         .asked = one.asked,
                         .policy = policy,
                         .options = kThorough,
                         .forecast = one.input},
                        layers, steps);
}

int changes_of(const std::vector<CourseEpoch>& epochs) {
  int changes = 0;
  for (std::size_t e = 1; e < epochs.size(); ++e)
    changes += epochs[e].layout != epochs[e - 1].layout ? 1 : 0;
  return changes;
}

TEST(LayoutCourse, IsNeverSlowerThanWithoutForesight) {
  std::mt19937 random(2);
  int faster = 0, skipped = 0, early = 0;
  double most = 0;
  for (int number = 0; number < 100; ++number) {
    Case one = random_case(random);
    one.input.machine.moves.block_s_per_byte = 1e-8 * std::pow(10, random() % 3);
    const int layers = static_cast<int>(one.job.model.layer_ends.size());
    std::vector<int> frozen{0};
    std::vector<std::int64_t> steps{1 + static_cast<std::int64_t>(random() % 20)};
    for (int epoch = 1; epoch < 5; ++epoch) {
      frozen.push_back(std::min(layers, frozen.back() + static_cast<int>(random() % 3)));
      steps.push_back(1 + static_cast<std::int64_t>(random() % 100));
    }
    const std::vector<CourseEpoch> greedy = course(one, frozen, steps, false),
                                   foreseen = course(one, frozen, steps, true);
    const double gain = 1 - seconds_of(foreseen) / seconds_of(greedy);
    EXPECT_GE(gain, -1e-9) << "course " << number;
    most = std::max(most, gain);
    if (gain <= 1e-9) continue;
    ++faster;
    (changes_of(foreseen) < changes_of(greedy) ? skipped : early) += 1;
  }
  std::printf(
      "%d of 100 courses are faster with foresight, by at most %.1f%%; %d with fewer "
      "changes\n",
      faster, 100 * most, skipped);
  EXPECT_GT(skipped, 0);
  EXPECT_GT(early, 0);
}

/// Ten steps before everything changes again, when rebuilding is necessary in any case.
TEST(LayoutCourse, WaitsForTheFreezeThatMakesAChangeFree) {
  std::mt19937 random(1);
  Case one = random_case(random);
  ModelSpec& model = one.job.model;
  model.units.resize(3), model.layer_ends = {1, 2};
  one.input.units.assign(3, {1, 1, 1, 0});
  one.input.machine = {};
  one.input.machine.moves.rebuild_s = 100;
  one.asked = {.world = 2, .pp = 2, .schedule = "gpipe"};
  one.asked.layout = make_layout({{0, 2}, {2, 3}}, {2, 1}, 4, 4);
  const Assignment now = assign(one.job, one.asked);
  const LayoutForecast forecast(one.job, now, one.input);
  const auto decision = [&](std::vector<LayoutPeriod> ahead) {
    return predicted().decide({.job = one.job,
                               .asked = one.asked,
                               .now = now,
                               .steps_left = 105,
                               .options = {},
                               .forecast = forecast,
                               .start = start_of(one.asked, now),
                               .ahead = std::move(ahead)});
  };
  EXPECT_TRUE(decision({}).next);
  const LayoutDecision waits = decision({{1, 100}});
  EXPECT_FALSE(waits.next) << waits.reason;
  EXPECT_NE(waits.reason.find("with 1 freeze expected"), std::string::npos) << waits.reason;
  EXPECT_TRUE(decision({{1, 5}}).next) << "a freeze shortly before the end";
}

}  // namespace
}  // namespace concertina
