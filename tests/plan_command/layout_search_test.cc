// `concertina plan search`: it finds the same as an exhaustive search; memory and times equal those
// of a run if there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "experiments/predict/machine_file.h"
#include "experiments/predict/plan_report.h"
#include "parallel/predict/layout_search.h"
#include "tests/own_figures.h"
#include "tests/plan_command/search_cases.h"

namespace concertina {
namespace {

/// Returns the config of a layout in a report.
RunConfig with_keys_of(const nlohmann::ordered_json& layout, RunConfig config) {
  std::istringstream keys(layout["keys"].get<std::string>());
  for (std::string key; keys >> key;) set_config(key, config);
  validate(config);
  return config;
}

TEST(PlannerSearch, FindsWhatTryingEverythingFinds) {
  for (const char* name : {"concertina", "megatron"}) {
    const PlanProblem one = problem_of(small_gpt(), 16e9, name);
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
  const PlanProblem one = problem_of(small_gpt(), 16e9);
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

/// By default, a search shows what this program runs, as `plan show` does for that machine: the
/// same units, cut and run in the same way. What Concertina cannot run has no such value.
TEST(PlannerSearch, TimesAreThoseOfAPlan) {
  for (const RunConfig& config : families())
    for (const char* machine : {"laptop", "a100-80gb"}) {
      const auto report = search_report(
          config, {.world = 4, .machine = machine, .device_memory = "40GiB", .top = 3});
      ASSERT_FALSE(report["layouts"].empty());
      for (const auto& layout : report["layouts"]) {
        SCOPED_TRACE(fmt::format("{} {}: {}", machine, config.model.family, layout["text"].dump()));
        EXPECT_EQ(layout["tp"], 1);
        const double shown =
            plan_report(with_keys_of(layout, config), {.world = 4, .costs = machine_path(machine)},
                        std::nullopt)["step_ms"];
        EXPECT_NEAR(layout["plan_show_s"].get<double>(), shown * 1e-3, 1e-12);
        if (machine != std::string("laptop")) continue;
        EXPECT_NEAR(layout["step_s"].get<double>(), shown * 1e-3, 0.05 * shown * 1e-3);
      }
    }
  const auto report =
      search_report(families().front(), {.world = 4, .machine = "a100-80gb", .top = 5, .tp = {2}});
  EXPECT_TRUE(report["layouts"][0]["plan_show_s"].is_null());
  expect_has(search_text(report), "needs tensor parallelism, which Concertina lacks\n");
  expect_has(search_text(report), "runs in Concertina: none of these 5;");
  RunConfig wide = families().front();
  wide.model.width = 4096;
  wide.model.heads = 32;
  const auto mixed = search_report(wide, {.world = 4,
                                          .machine = "a100-80gb",
                                          .tp = {1, 2},
                                          .pp = {2},
                                          .microbatch = {16},
                                          .chunks = {1},
                                          .schedules = {"1f1b"},
                                          .recompute = {"none"}});
  const auto &first = mixed["layouts"][0], &second = mixed["layouts"][1];
  EXPECT_TRUE(first["runs_here"].get<bool>() && !second["runs_here"].get<bool>());
  EXPECT_GT(first["step_s"].get<double>(), second["step_s"].get<double>()) << "but it runs here";
  expect_has(search_text(mixed), "runs in Concertina: the first 1 of these 2;");
}

/// A layout that fits by the model, but not in an actual run, is not among the best.
TEST(PlannerSearch, ExactMemoryDecides) {
  const PlanProblem one = problem_of(small_gpt(), 16e9);
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
    EXPECT_LT(seconds, 30);
  }
}

TEST(PlannerSearch, SaysWhatItCannotTellApart) {
  const auto report = search_report(small_gpt(), {.world = 8, .machine = "a100-80gb", .top = 30});
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
  expect_has(text, fmt::format("~: the {} layouts within 5% of the fastest", within));
  expect_has(text, "too close to distinguish");
  expect_has(text, "\n 2~ ");
  EXPECT_EQ(text.find("model\n"), std::string::npos) << text;
  expect_has(text.substr(text.find("largest gain: ")), "less time with ");
}

/// A report says what it was compared with on this machine and this software, or that it was not
/// compared; it states no error that was not measured.
TEST(PlannerSearch, SaysWhatItWasComparedWith) {
  const auto answer = [](const char* machine, const char* software) {
    return search_report(
        small_gpt(),
        {.world = 8, .machine = machine, .device_memory = "80GiB", .software = software, .top = 2});
  };
  const std::string never = "has ever been compared with a measurement";
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
  expect_has(search_text(answer("h100", "megatron")), "28 to 55%");
}

TEST(PlannerSearch, FasterLayoutsThatDoNotFitNeedAtMostTwiceTheMemory) {
  const auto report =
      search_report(gpt(32, 4096, 32, 64), {.world = 64, .machine = "a100-80gb", .top = 3});
  ASSERT_FALSE(report["too_large"].empty());
  for (const auto& layout : report["too_large"])
    EXPECT_LE(layout["memory"]["total_bytes"].get<double>(),
              2 * report["device_memory_bytes"].get<double>());
}

std::string refusal(const RunConfig& config, const LayoutSearchOptions& options) {
  const Error error = input_error([&] { search_report(config, options); });
  return fmt::format("{}: {}; try: {}", error.where(), error.message(), error.fix());
}

TEST(PlannerSearch, RefusalsNameTheOptionAndWhatWouldDo) {
  const std::pair<LayoutSearchOptions, const char*> refused[] = {
      {{.world = 8, .device_memory = ""}, "'' is not a memory size"},
      {{.world = 8, .device_memory = "40000000000"}, "has no unit"},
      {{.world = 8, .device_memory = "0"}, "without memory"},
      {{.world = 8, .device_memory = "1MiB"}, "at least --device-memory"},
      {{.world = 8, .device_memory = "much"}, "40GiB"},
      {{.world = 8, .tp = {3}}, "has --tp 3; try: with the other options: 1"},
      {{.world = 8, .pp = {16}}, "has --pp 16; try: with the other options:"},
      {{.world = 8, .schedules = {"dualpipe"}},
       "has --schedules dualpipe; try: with the other options: 1f1b, "},
      {{.world = 8, .schedules = {"nonsense"}}, "--schedules: "},
      {{.world = 8, .microbatch = {7}}, "has --microbatch 7; try: with"},
      {{.world = 61}, "no layout of 61 ranks: there is no tp (1, 2, 4, 8) x pp (at most"},
      {{.world = 61}, "try: --world 56, another batch.global"},
      {{.world = 8, .machine = "a100-80g"}, "a100-80gb (one of"},
      {{.world = 8, .machine = "a100"}, "try: a100-40gb (one of"},
      {{.world = 8, .machine = "H10"}, "try: h100 (one of"},
      {{.world = 8, .software = "megatrn"}, "megatron"},
      {{.world = 8, .recompute = {"ful"}}, "full"}};
  for (auto [options, part] : refused) {
    if (options.machine.empty()) options.machine = "laptop";
    expect_has(refusal(small_gpt(), options), part);
  }
  expect_has(refusal(small_gpt(), {.world = 8}),
             "--machine FILE.toml, or one of: a100-40gb, a100-80gb");
  const std::string none = refusal(gpt(96, 12288, 96, 64), {.world = 16, .machine = "a100-80gb"});
  for (const char* part :
       {"the nearest, tp", "full recomputation, needs ", " more; try: a larger --world"})
    expect_has(none, part);
}

TEST(PlannerSearch, AMachineFileSaysItsMemoryAndRate) {
  const TempFile rate("rate.toml", "flops_per_s = 1e12\n"),
      memory("memory.toml", "memory = \"8 GiB\"\n");
  expect_has(refusal(small_gpt(), {.world = 16, .machine = rate.path()}),
             "memory = \"40 GiB\" in the machine file");
  expect_has(refusal(small_gpt(), {.world = 16, .machine = memory.path()}), "or --rate GFLOPS");
  for (const char* bad :
       {"flops_per_s = nan", "flops_per_s = -1e12", "memory = \"8 Gb\"", "memory_bytes_per_s = inf",
        "layer_s = -1", "nics_per_host = 1.5", "[remote]\nbytes_per_s = 0"}) {
    const TempFile file("bad.toml", bad);
    input_error([&] { read_machine(file.path()); });
  }
}

}  // namespace
}  // namespace concertina
