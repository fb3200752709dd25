// `concertina plan search`: an enumeration that leaves nothing out, a search that finds what trying
// everything finds, memory and times that are those of a run where it is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "experiments/config/config_toml.h"
#include "experiments/predict/machine_file.h"
#include "experiments/predict/plan_report.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/predict/search_report.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/predict/layout_search.h"
#include "tests/experiments/config_text.h"
#include "tests/own_figures.h"
#include "tests/planned.h"

namespace concertina {
namespace {

RunConfig gpt(int layers, int width, int heads, int batch) {
  RunConfig config;
  config.model = {
      .layers = layers, .width = width, .heads = heads, .context = 2048, .vocab = 51200};
  config.batch = {batch, batch};
  config.numerics.compute = "bf16";
  config.run.device = "cuda";
  return config;
}

PlanProblem problem_of(const RunConfig& config, double memory,
                       const char* software = "concertina") {
  PlanProblem problem = search_problem(config, {.machine = "a100-80gb", .software = software});
  problem.memory = memory;
  return problem;
}

/// The config of a layout of a report.
RunConfig with_keys_of(const nlohmann::ordered_json& layout, RunConfig config) {
  std::istringstream keys(layout["keys"].get<std::string>());
  for (std::string key; keys >> key;) set_config(key, config);
  validate(config);
  return config;
}

/// 12 layers on 16 devices of 2 hosts.
RunConfig small() {
  return gpt(12, 1024, 16, 32);
}
SearchSpace small_space() {
  return {.world = 16, .ranks_per_host = 8};
}

/// The bytes of a software for each parameter, of one stage in the middle of a pipeline.
TEST(LayoutMemory, StateIsBytesPerParameter) {
  const RunConfig config = gpt(96, 12288, 96, 64);
  const PlanCandidate candidate{.tp = 8, .pp = 8, .dp = 4, .recompute = Recompute::full};
  struct Expected {
    const char* software;
    double weights, optimizer;
  };
  // 64 microbatches in 16 leaves, 4 of each replica: buffers for 3 levels of its tree.
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
  // BLOOM's 70 layers on 12 stages: embedding and head are a layer each.
  EXPECT_EQ(layers(70, "megatron", 12), (std::vector<int>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5}));
  EXPECT_EQ(layers(126, "megatron", 16).front(), 7);  // Llama 3 405B
  std::vector<int> even = layers(30, "deepspeed", 7);
  EXPECT_EQ(*std::ranges::max_element(even), 5);
  EXPECT_EQ(*std::ranges::min_element(even), 4);
}

/// Every combination there is, tried one by one.
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
                  v < std::min(s.chunks.usual, 2))
                continue;
              if (pp == 1 && (schedule.name != "1f1b" || v != 1)) continue;
              const bool usual = v == s.chunks.usual, ends = (layers + 2) % (pp * v) == 0;
              if (layers % (pp * v) == 0 || (software.cuts == Cuts::units && usual) ||
                  (software.cuts != Cuts::units && ends) || (software.cuts == Cuts::even && usual))
                count += 3;
            }
        }
  return count;
}

TEST(Candidates, AreAllThatDivide) {
  for (const char* name : {"concertina", "megatron", "deepspeed"}) {
    const PlanProblem one = problem_of(small(), 0, name);
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
  const PlanProblem own = problem_of(small(), 0), megatron = problem_of(small(), 0, "megatron");
  EXPECT_EQ(plan_candidates(megatron, space).size(), 2U);  // 12 layers are not 8 equal stages
  EXPECT_EQ(plan_candidates(own, space).size(), 4U);
  space.schedules = {"zb-w"};
  EXPECT_THROW(plan_candidates(own, space), Error);
  space.schedules = {};
  space.pp = {5};
  EXPECT_THROW(plan_candidates(own, space), Error);
}

TEST(PlannerSearch, FindsWhatTryingEverythingFinds) {
  for (const char* name : {"concertina", "megatron"}) {
    const PlanProblem one = problem_of(small(), 16e9, name);
    const auto candidates = plan_candidates(one, small_space());
    const SearchOutcome found = search_layouts(one, candidates, {.top = 3, .actions = 1e9});
    EXPECT_EQ(found.candidates, candidates.size());
    EXPECT_EQ(found.fitting + found.unfit, found.simulated + found.worse);
    EXPECT_EQ(found.left_out, 0U);
    EXPECT_GT(found.worse, 0U);
    const SearchOutcome all = search_layouts(
        one, candidates, {.top = static_cast<int>(candidates.size()), .actions = 1e9});
    EXPECT_EQ(all.worse, 0U);
    ASSERT_EQ(found.best.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(found.best[i].step.seconds, all.best[i].step.seconds) << name;
    WorkTable table(one);
    for (const FoundLayout& layout : all.best) {
      EXPECT_LE(CandidateModel(one, layout.candidate, table).least_seconds(),
                layout.step.seconds * (1 + 1e-9))
          << to_text(layout.candidate);
      EXPECT_LE(layout.memory.total(), one.memory);
      const StepPrediction& step = layout.step;
      EXPECT_NEAR(step.compute + step.again + step.group + step.bubble + step.transfer +
                      step.reduction + step.update,
                  step.seconds, 0.02 * step.seconds)
          << to_text(layout.candidate);
    }
  }
}

TEST(PlannerSearch, WhatTheBudgetLeavesOutIsCounted) {
  const PlanProblem one = problem_of(small(), 16e9);
  const auto candidates = plan_candidates(one, small_space());
  const SearchOutcome found = search_layouts(one, candidates, {.top = 3, .actions = 3000});
  EXPECT_GT(found.left_out, 0U);
  EXPECT_LE(found.actions, 3000);
  EXPECT_EQ(found.fitting + found.unfit, found.simulated + found.worse + found.left_out);
  EXPECT_GT(found.least_left_out, 0);
  EXPECT_FALSE(found.best.empty());
}

TEST(PlannerSearch, MemoryIsARunsOwnWhereItRunsHere) {
  RunConfig config;
  for (const char* set : {"model.layers=6", "model.width=64", "model.heads=2", "model.context=32",
                          "batch.global=16", "batch.microbatches=16", "run.threads=1"})
    set_config(set, config);
  validate(config);
  const auto report = search_report(
      config,
      {.world = 4, .machine = "laptop", .device_memory = "1GiB", .tp = {1}, .recompute = {"none"}});
  ASSERT_FALSE(report["layouts"].empty());
  for (const auto& layout : report["layouts"]) {
    EXPECT_TRUE(layout["memory"]["exact"].get<bool>());
    const RunConfig own = with_keys_of(layout, config);
    const auto plan = plan_report(own, {.world = 4, .gflops = 1}, std::nullopt);
    EXPECT_EQ(layout["memory"]["total_bytes"].get<double>(),
              plan["peak_bytes"].get<double>() + 200 * 1024 * 1024);
  }
}

/// A model of each family, of which most memory is tensors.
std::vector<RunConfig> families() {
  const std::vector<std::vector<std::string>> models = {
      {"model.family=gpt", "model.context=256"},
      {"model.family=llama", "model.context=256", "model.llama.kv_heads=2"},
      {"model.family=bert", "model.context=256"},
      {"model.family=vit", "model.vit.image=64", "model.vit.patch=4", "model.classes=10"}};
  std::vector<RunConfig> configs;
  for (std::vector<std::string> sets : models) {
    sets.insert(sets.end(),
                {"model.layers=8", "model.width=256", "model.heads=4", "model.vocab=2048",
                 "batch.global=32", "batch.microbatches=32", "run.threads=1"});
    configs.push_back(load_config({}, sets));
  }
  return configs;
}

/// The memory that is modelled, where this program has it to the byte.
TEST(LayoutMemory, IsNearlyThatOfARunOfEveryFamily) {
  double worst = 0;
  for (const RunConfig& config : families())
    for (const char* schedule : {"1f1b", "gpipe", "zb-h1", "zb-v", "interleaved-1f1b"})
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        const PlanCandidate candidate{
            .pp = 4,
            .dp = 2,
            .chunks = find_schedule(schedule).value.chunks.usual > 1 || schedule[0] == 'i' ? 2 : 1,
            .schedule = schedule,
            .samples = 2,
            .recompute = recompute};
        PlanProblem problem = problem_of(config, 0);
        problem.machine.device.reserved_bytes = 0;
        WorkTable table(problem);
        const CandidateModel model(problem, candidate, table);
        const double modelled = model.memory(model.simulated(false).slots).total();
        RunConfig own = config;
        own.parallel.pp = 4, own.parallel.dp = 2, own.parallel.chunks = candidate.chunks;
        own.parallel.schedule = schedule;
        own.batch.microbatches = 16;
        if (recompute != Recompute::none)
          own.parallel.recompute = {recompute == Recompute::full ? "full" : "attention"};
        const PlannedJob run = planned(own, 8);
        const auto exact = static_cast<double>(largest_total(predict_memory(own, run.job, run, 1)));
        EXPECT_NEAR(modelled / exact, 1, 0.05) << config.model.family << " " << to_text(candidate)
                                               << ": " << modelled << ", " << exact;
        worst = std::max(worst, std::abs(modelled / exact - 1));
      }
  std::printf("memory modelled is at most %.1f%% off\n", 100 * worst);
}

/// `plan show` and `plan search` on one machine: the same units, cut and run alike.
TEST(PlannerSearch, TimesAreThoseOfAPlan) {
  for (const RunConfig& config : families()) {
    const auto report = search_report(
        config, {.world = 4, .machine = "laptop", .device_memory = "4GiB", .top = 3, .tp = {1}});
    for (const auto& layout : report["layouts"]) {
      const RunConfig own = with_keys_of(layout, config);
      const auto plan =
          plan_report(own, {.world = 4, .costs = machine_path("laptop")}, std::nullopt);
      EXPECT_NEAR(plan["step_ms"].get<double>() * 1e-3 / layout["step_s"].get<double>(), 1, 0.05)
          << config.model.family << ": " << layout["text"];
    }
  }
}

/// What the model takes for small enough and a run would not have room for is none of the best.
TEST(PlannerSearch, ExactMemoryDecides) {
  const PlanProblem one = problem_of(small(), 16e9);
  const auto candidates = plan_candidates(one, small_space());
  SearchBudget budget{.top = 5, .actions = 1e9};
  const SearchOutcome model = search_layouts(one, candidates, budget);
  const PlanCandidate best = model.best.front().candidate;
  budget.exact_bytes = [&](const PlanCandidate& candidate) {
    return candidate == best ? std::optional<double>(7e9) : std::nullopt;
  };
  const SearchOutcome exact = search_layouts(one, candidates, budget);
  ASSERT_EQ(exact.best.size(), 5U);
  EXPECT_EQ(exact.best.front().candidate, model.best[1].candidate);
  EXPECT_EQ(exact.fitting + 1, model.fitting);
  for (const FoundLayout& found : exact.best) EXPECT_FALSE(found.exact);
  budget.exact_bytes = [](const PlanCandidate&) { return 1e9; };
  for (const FoundLayout& found : search_layouts(one, candidates, budget).best) {
    EXPECT_TRUE(found.exact);
    EXPECT_NEAR(found.memory.total(), 1e9 + found.memory.reserved, 1);
  }
}

TEST(PlannerSearch, LargeQuestionsAreAnsweredSoon) {
  struct Question {
    RunConfig config;
    int world;
    const char* machine;
  };
  for (const Question& one : {Question{gpt(40, 5120, 40, 1024), 128, "a100-40gb"},
                              Question{gpt(128, 25600, 160, 3072), 3072, "a100-80gb"}}) {
    const double start = cpu_seconds();
    const auto report =
        search_report(one.config, {.world = one.world, .machine = one.machine, .tp = {1, 2, 4, 8}});
    const double seconds = cpu_seconds() - start;
    std::printf("%d ranks: %.1f s of CPU, %s\n", one.world, seconds,
                report["layouts"][0]["text"].get<std::string>().c_str());
    EXPECT_GT(report["layouts"].size(), 3U);
    if (kOptimised) {
      EXPECT_LT(seconds, 30);
    }
  }
}

std::string refusal(const RunConfig& config, const LayoutSearchOptions& options) {
  try {
    search_report(config, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error.message() + "; try: " + error.fix();
  }
  return "not refused";
}

TEST(PlannerSearch, RefusalsNameTheOptionAndWhatWouldDo) {
  const auto holds = [](const LayoutSearchOptions& options, const char* part) {
    expect_has(refusal(small(), options), part);
  };
  holds({.world = 8, .machine = "laptop", .device_memory = ""}, "'' is no size");
  holds({.world = 8, .machine = "laptop", .device_memory = "40000000000"}, "has no unit");
  holds({.world = 8, .machine = "laptop", .device_memory = "0"}, "without memory");
  holds({.world = 8, .machine = "laptop", .tp = {3}}, "has --tp 3; try: with the other options: 1");
  holds({.world = 8, .machine = "laptop", .pp = {16}}, "has --pp 16; try: with the other options:");
  holds({.world = 8, .machine = "laptop", .schedules = {"dualpipe"}},
        "has --schedules dualpipe; try: with the other options: 1f1b, ");
  holds({.world = 8, .machine = "laptop", .microbatch = {7}}, "has --microbatch 7; try: with");
  holds({.world = 61, .machine = "laptop"}, "no layout of 61 ranks: tp (1, 2, 4, 8) x pp (at most");
  holds({.world = 61, .machine = "laptop"}, "try: --world 56, another batch.global");
  holds({.world = 8, .machine = "laptop", .device_memory = "1MiB"}, "GiB, the least that would do");
  const Error error = input_error([&] {
    search_report(small(), {.world = 8, .machine = "laptop", .schedules = {"nonsense"}});
  });
  EXPECT_EQ(error.where(), "--schedules");
}

TEST(PlannerSearch, SaysWhatItCannotTellApart) {
  const auto report = search_report(small(), {.world = 8, .machine = "a100-80gb", .top = 30});
  const double best = report["layouts"][0]["step_s"];
  std::size_t within = 0;
  for (const auto& layout : report["layouts"]) {
    const bool marked = layout["within_tie"];
    EXPECT_EQ(marked, layout["step_s"].get<double>() <= 1.05 * best);
    within += marked ? 1 : 0;
  }
  ASSERT_GT(within, 1U);
  ASSERT_LT(within, report["layouts"].size());
  const std::string text = search_text(report);
  expect_has(text, fmt::format("~: {} layout", within - 1));
  expect_has(text, "too near to be told apart");
  expect_has(text, "\n 2~ ");
  EXPECT_EQ(text.find("model\n"), std::string::npos) << text;
  expect_has(text.substr(text.find("what would help most: ")), "less time with ");
}

/// An answer says what it was compared with, on this machine and as this software, or that nothing
/// was; it claims no error that nobody measured.
TEST(PlannerSearch, SaysWhatItWasComparedWith) {
  const auto answer = [](const char* machine, const char* software) {
    return search_report(
        small(),
        {.world = 8, .machine = machine, .device_memory = "80GiB", .software = software, .top = 2});
  };
  const std::string never = "was ever compared with a measurement by this project";
  for (const std::string_view machine : machine_presets())
    for (const char* software : {"concertina", "megatron", "deepspeed"}) {
      SCOPED_TRACE(fmt::format("{} {}", machine, software));
      const std::string name(machine);
      const auto report = answer(name.c_str(), software);
      const std::string text = search_text(report);
      bool own = false;
      for (const std::string& one : read_machine(name).compared) {
        expect_has(text, "compared with measurements, " + one);
        own = own || one.starts_with(std::string(software) + ": ");
      }
      EXPECT_EQ(report["compared"].size(), read_machine(name).compared.size());
      EXPECT_EQ(text.find(never) == std::string::npos, own) << text;
      EXPECT_EQ(text.find("% off on machines"), std::string::npos) << text;
    }
  EXPECT_TRUE(search_text(answer("a100-80gb", "megatron")).find(never) == std::string::npos);
  expect_has(search_text(answer("h100", "megatron")), "28 to 55% off");
}

/// What a search shows by default is what this program runs; `plan show` is quoted beside it.
TEST(PlannerSearch, ShowsWhatRunsHere) {
  const RunConfig config = families().front();
  LayoutSearchOptions options{.world = 4, .machine = "a100-80gb", .top = 5};
  const auto here = search_report(config, options);
  ASSERT_FALSE(here["layouts"].empty());
  for (const auto& layout : here["layouts"]) {
    EXPECT_EQ(layout["tp"], 1);
    const RunConfig own = with_keys_of(layout, config);
    const auto plan =
        plan_report(own, {.world = 4, .costs = machine_path(options.machine)}, std::nullopt);
    EXPECT_NEAR(layout["plan_show_s"].get<double>(), plan["step_ms"].get<double>() * 1e-3, 1e-12);
  }
  options.tp = {2};
  const auto report = search_report(config, options);
  EXPECT_TRUE(report["layouts"][0]["plan_show_s"].is_null());
  expect_has(search_text(report), "does not run here\n");
}

TEST(PlannerSearch, FasterLayoutsThatDoNotFitNeedAtMostTwiceTheMemory) {
  const auto report =
      search_report(gpt(32, 4096, 32, 64), {.world = 64, .machine = "a100-80gb", .top = 3});
  ASSERT_FALSE(report["too_large"].empty());
  for (const auto& layout : report["too_large"])
    EXPECT_LE(layout["memory"]["total_bytes"].get<double>(),
              2 * report["device_memory_bytes"].get<double>());
}

TEST(PlannerSearch, RefusalsSayWhatToGive) {
  expect_has(refusal(small(), {.world = 16}),
             "--machine FILE.toml, or one of: a100-40gb, a100-80gb");
  expect_has(refusal(small(), {.world = 16, .machine = "a100-80g"}), "a100-80gb (one of");
  expect_has(refusal(small(), {.world = 16, .machine = "a100"}), "try: a100-40gb (one of");
  expect_has(refusal(small(), {.world = 16, .machine = "H10"}), "try: h100 (one of");
  expect_has(refusal(small(), {.world = 16, .machine = "laptop", .device_memory = "much"}),
             "40GiB");
  expect_has(refusal(small(), {.world = 16, .machine = "h200", .software = "megatrn"}), "megatron");
  expect_has(refusal(small(), {.world = 16, .machine = "h200", .recompute = {"ful"}}), "full");
  const std::string none = refusal(gpt(96, 12288, 96, 64), {.world = 16, .machine = "a100-80gb"});
  expect_has(none, "the nearest, tp");
  expect_has(none, "full recomputation, needs ");
  expect_has(none, " more; try: a larger --world");
  const std::string file = testing::TempDir() + "planner_machine.toml";
  std::ofstream(file) << "flops_per_s = 1e12\n";
  expect_has(refusal(small(), {.world = 16, .machine = file}),
             "memory = \"40 GiB\" in the machine file");
  std::ofstream(file) << "memory = \"8 GiB\"\n";
  expect_has(refusal(small(), {.world = 16, .machine = file}), "or --rate GFLOPS");
  for (const char* bad :
       {"flops_per_s = nan", "flops_per_s = -1e12", "memory = \"8 Gb\"", "memory_bytes_per_s = inf",
        "layer_s = -1", "nics_per_host = 1.5", "[remote]\nbytes_per_s = 0"}) {
    std::ofstream(file) << bad << "\n";
    EXPECT_THROW(read_machine(file), Error) << bad;
  }
  std::filesystem::remove(file);
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
    const std::string file = testing::TempDir() + "preset.toml";
    std::ofstream(file) << machine_toml(machine);
    EXPECT_EQ(read_machine(file), machine) << name;
    EXPECT_EQ(machine_from_json(to_json(machine), "a test"), machine) << name;
    std::filesystem::remove(file);
  }
}

}  // namespace
}  // namespace concertina
