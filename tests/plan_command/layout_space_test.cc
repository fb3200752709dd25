// What `plan search` considers: a complete enumeration, cuts and memory of each layout, machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/predict/machine_file.h"
#include "experiments/predict/predict_memory.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/predict/layout_search.h"
#include "tests/plan_command/search_cases.h"
#include "tests/planned.h"

namespace concertina {
namespace {

/// Bytes per parameter of each software, for a stage in the middle of a pipeline.
TEST(LayoutMemory, StateIsBytesPerParameter) {
  const RunConfig config = gpt(96, 12288, 96, 64);
  const PlanCandidate candidate{.tp = 8, .pp = 8, .dp = 4, .recompute = Recompute::full};
  struct Expected {
    const char* software;
    double weights, optimizer;
  };
  // 64 microbatches in 16 leaves, 4 per replica: buffers for 3 levels of its tree.
  for (const Expected& one :
       {Expected{"megatron", 4, 12}, {"deepspeed", 4, 3}, {"concertina", 6 + 3 * 4 + 3, 2}}) {
    const PlanProblem problem = problem_of(config, 0, one.software);
    WorkTable table(problem);
    const CandidateModel model(problem, candidate, table);
    const PlanMemory memory = model.memory(std::vector<int>{8, 7, 6, 5, 4, 3, 2, 1});
    const double parameters = model.parameters(0);
    EXPECT_NEAR(parameters * 8 / (12 * 12288.0 * 12288 * 12 + 51200 * 12288.0), 1, 0.01);
    EXPECT_NEAR(memory.weights / parameters, one.weights, 1e-3) << one.software;
    EXPECT_DOUBLE_EQ(memory.optimizer, one.optimizer * parameters) << one.software;
    EXPECT_EQ(memory.reserved, 12.0 * (1 << 30));
  }
}

TEST(LayoutCuts, AreThoseOfTheSoftware) {
  const auto layers = [](int count, const char* software, int stages) {
    const PlanProblem problem = problem_of(gpt(count, 64, 4, 8), 0, software);
    std::vector<int> result;
    int before = 0;
    for (const UnitRange& cut : layer_cuts(problem, stages)) {
      const int ends = layers_of_units(problem.model, cut.last);
      result.push_back(ends - std::exchange(before, ends));
    }
    EXPECT_EQ(layer_cuts(problem, stages).back().last, std::ssize(problem.model.units));
    return result;
  };
  EXPECT_EQ(layers(48, "megatron", 4), (std::vector<int>{12, 12, 12, 12}));
  // BLOOM's 70 layers on 12 stages: embedding and head count as a layer each.
  EXPECT_EQ(layers(70, "megatron", 12), (std::vector<int>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5}));
  EXPECT_EQ(layers(126, "megatron", 16).front(), 7);  // Llama 3 405B
  std::vector<int> even = layers(30, "deepspeed", 7);
  EXPECT_EQ(*std::ranges::max_element(even), 5);
  EXPECT_EQ(*std::ranges::min_element(even), 4);
}

/// Counts every combination by trying each one.
std::size_t count_by_hand(int layers, const Software& software) {
  std::size_t count = 0;
  for (const int tp : {1, 2, 4, 8})
    for (int pp = 1; pp <= std::min(16, layers); ++pp)
      for (int dp = 1; dp <= 16; ++dp)
        for (int samples = 1; samples <= 32; ++samples) {
          if (tp * pp * dp != 16 || 32 % (dp * samples) != 0) continue;
          for (const Entry<Schedule>& schedule : schedules())
            for (int v = 1; v <= 16; ++v) {
              const Schedule& s = schedule.value;
              if (s.searched || s.placement == Placement::opposite || pp % s.rank_step != 0 ||
                  v % s.chunks.step != 0 || v > s.chunks.most || pp * v > layers ||
                  v < std::min(s.chunks.default_value, 2))
                continue;
              if (pp == 1 && (schedule.name != "1f1b" || v != 1)) continue;
              const bool default_value = v == s.chunks.default_value,
                         ends = (layers + 2) % (pp * v) == 0;
              if (layers % (pp * v) == 0 || (software.cuts == Cuts::units && default_value) ||
                  (software.cuts != Cuts::units && ends) ||
                  (software.cuts == Cuts::even && default_value))
                count += 3;
            }
        }
  return count;
}

TEST(Candidates, AreAllThatDivide) {
  for (const char* name : {"concertina", "megatron", "deepspeed"}) {
    const PlanProblem one = problem_of(small_gpt(), 0, name);
    const auto found = plan_candidates(one, small_space());
    EXPECT_GT(found.size(), 500U);
    EXPECT_EQ(found.size(), count_by_hand(12, one.software));
    std::set<std::string> texts;
    for (const PlanCandidate& candidate : found) texts.insert(to_text(candidate));
    EXPECT_EQ(texts.size(), found.size());
  }
}

TEST(Candidates, ListsBoundThem) {
  SearchSpace space = small_space();
  space.tp = {2};
  space.pp = {4};
  space.samples = {1, 2};
  space.schedules = {"1f1b", "zb-v"};
  space.recompute = {Recompute::full};
  space.chunks = {1, 2};
  const PlanProblem own = problem_of(small_gpt(), 0),
                    megatron = problem_of(small_gpt(), 0, "megatron");
  EXPECT_EQ(plan_candidates(megatron, space).size(), 2U);  // 12 layers do not give 8 equal stages
  EXPECT_EQ(plan_candidates(own, space).size(), 4U);
  space.schedules = {"zb-w"};
  EXPECT_THROW(plan_candidates(own, space), Error);
  space.schedules = {};
  space.pp = {5};
  EXPECT_THROW(plan_candidates(own, space), Error);
}

/// Compares the modeled memory with this program's memory, which is known to the byte.
TEST(LayoutMemory, IsNearlyThatOfARunOfEveryFamily) {
  double worst = 0;
  for (const RunConfig& config : families())
    for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-v", "interleaved-1f1b"})
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        const PlanCandidate candidate{
            .pp = 4,
            .dp = 2,
            .chunks = find_schedule(schedule).value.chunks.default_value > 1 || schedule[0] == 'i'
                          ? 2
                          : 1,
            .schedule = schedule,
            .samples = 2,
            .recompute = recompute};
        PlanProblem problem = problem_of(config, 0);
        problem.machine.device.reserved_bytes = 0;
        WorkTable table(problem);
        const CandidateModel model(problem, candidate, table);
        const double modeled = model.memory(model.simulated(false).slots).total();
        RunConfig own = config;
        own.parallel.pp = 4, own.parallel.dp = 2, own.parallel.chunks = candidate.chunks;
        own.parallel.schedule = schedule;
        own.batch.microbatches = 16;
        if (recompute != Recompute::none)
          own.parallel.recompute = {recompute == Recompute::full ? "full" : "attention"};
        const PlannedJob run = planned(own, 8);
        const auto exact = static_cast<double>(largest_total(predict_memory(own, run.job, run, 1)));
        EXPECT_NEAR(modeled / exact, 1, 0.05) << config.model.family << " " << to_text(candidate)
                                               << ": " << modeled << ", " << exact;
        worst = std::max(worst, std::abs(modeled / exact - 1));
      }
  std::printf("memory modeled is at most %.1f%% off\n", 100 * worst);
}

TEST(MachinePresets, AreWholeAndReadBack) {
  const std::set<std::string_view> names(machine_presets().begin(), machine_presets().end());
  for (const char* name : {"a100-40gb", "a100-80gb", "h100", "h200", "laptop"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const std::string_view name : names) {
    const MachineModel machine = read_machine(std::string(name));
    EXPECT_GT(machine.flops_per_s, 0) << name;
    EXPECT_GT(machine.device.memory, machine.device.reserved_bytes) << name;
    EXPECT_GT(machine.device.peak_flops_per_s, machine.flops_per_s) << name;
    EXPECT_TRUE(std::isfinite(machine.local.bandwidth)) << name;
    const TempFile file("preset.toml", machine_toml(machine));
    EXPECT_EQ(read_machine(file.path()), machine) << name;
    EXPECT_EQ(machine_from_json(to_json(machine), "a test"), machine) << name;
  }
}

}  // namespace
}  // namespace concertina
