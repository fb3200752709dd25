// Compares what units report with published formulas and sizes: parameters, FLOPs, activations.
#include <gtest/gtest.h>

#include "experiments/run/planning.h"
#include "parallel/predict/unit_work.h"
#include "tests/own_figures.h"
#include "tests/plan_command/search_cases.h"

namespace concertina {
namespace {

PlanProblem unit_problem(RunConfig config, const char* software) {
  config.batch.microbatches = config.batch.global;
  MachineModel machine;
  machine.flops_per_s = 1;
  return {model_of(config)->spec(), config.batch.global, find_software(software), machine, 0};
}

/// Includes the masks that dropout stores.
RunConfig published_gpt(int layers, int width, int heads, int batch, int vocabulary = 51200) {
  RunConfig config = gpt(layers, width, heads, batch, vocabulary);
  config.model.dropout = 0.1;
  return config;
}

/// Narayanan et al. 2021, table 1, and 12 l h^2 (1 + 13/(12 h)) + (V + s) h with the last norm's.
TEST(UnitCosts, ParametersAreThoseOfPublishedModels) {
  struct Published {
    int layers;
    double width, billions;
  };
  for (const Published& row :
       {Published{24, 2304, 1.7}, {40, 6144, 18.4}, {48, 8192, 39.1}, {80, 12288, 145.6}}) {
    const PlanProblem problem =
        unit_problem(published_gpt(row.layers, static_cast<int>(row.width), 16, 1), "megatron");
    const double h = row.width, formula = row.layers * (12 * h * h + 13 * h) + 53248 * h + 2 * h;
    EXPECT_EQ(static_cast<double>(parameter_count(make_buckets(problem.model))), formula);
    EXPECT_NEAR(formula, row.billions * 1e9, 0.05e9);
    // In a group of 8, each device has an eighth of all but norms, biases of sums and positions.
    double own = 0;
    for (std::size_t u = 0; u + 1 < problem.model.units.size(); ++u)
      for (const ParameterSpec& parameter : problem.model.units[u].parameters)
        own += share_of(parameter, 8);
    EXPECT_NEAR(own, formula / 8 + 7.0 / 8 * (row.layers * 6 * h + 2048 * h), 3 * h);
  }
}

/// Narayanan et al. 2021, equation 3: 96 B s l h^2 (1 + s/(6h) + V/(16 l h)) with full
/// recomputation.
TEST(UnitCosts, FlopsAreThoseOfMegatronsFormula) {
  const auto hardware = [](const RunConfig& config, Recompute recompute) {
    const PlanProblem problem = unit_problem(config, "megatron");
    const PlanCandidate candidate{.recompute = recompute};
    return model_flops(problem.model, problem.batch) +
           problem.batch * WorkTable(problem).of(candidate).recompute_flops;
  };
  const RunConfig config = published_gpt(80, 12288, 96, 2304);  // 145.6B
  const double B = 2304, s = 2048, l = 80, h = 12288, V = 51200;
  const double recomputed = 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h));
  const double again = 24 * B * s * l * h * h * (1 + s / (6 * h));  // the layers' forward pass
  EXPECT_NEAR(hardware(config, Recompute::none) / (recomputed - again), 1, 1e-12);
  EXPECT_NEAR(hardware(config, Recompute::full) / recomputed, 1, 1e-12);
  EXPECT_NEAR(
      (hardware(config, Recompute::selective) - (recomputed - again)) / (4 * B * s * s * h * l), 1,
      1e-9);
  // Published for a trial of BLOOM: 117.07 s per step of 2048 samples, 137.70 TFLOP/s on 384 GPUs.
  EXPECT_NEAR(
      hardware(published_gpt(72, 14336, 64, 2048, 250880), Recompute::full) / (117.07 * 384 * 1e12),
      137.70, 0.02);
}

/// Returns the bytes that one layer keeps per microbatch, divided by s b h.
double kept_of_a_layer(const RunConfig& config, const char* software, PlanCandidate candidate) {
  const PlanProblem problem = unit_problem(config, software);
  candidate.samples = 3;
  const std::vector<int>& ends = problem.model.layer_ends;
  WorkTable table(problem);
  double saved = 0;
  for (int unit = ends[1]; unit < ends[2]; ++unit)
    saved += table.of(candidate).bytes[static_cast<std::size_t>(unit)].saved;
  return saved / (3.0 * static_cast<double>(problem.model.tokens_per_sample) *
                  static_cast<double>(config.model.width));
}

/// Korthikanti et al. 2022, section 4: s b h (10 + 24/t + 5 a s/(h t)) per layer; 5 a s/h is 80 for
/// GPT-3 175B and 64 for MT-NLG 530B. It omits statistics of norms and rows, which are 0.3%.
TEST(UnitCosts, ActivationsAreThoseOfKorthikanti) {
  struct Published {
    int width, heads;
    double scores;
  };
  for (const Published& row : {Published{12288, 96, 80}, Published{20480, 128, 64}}) {
    const RunConfig config = published_gpt(4, row.width, row.heads, 3);
    const auto of = [&](int tp, Recompute recompute) {
      return kept_of_a_layer(config, "megatron", {.tp = tp, .recompute = recompute});
    };
    EXPECT_NEAR(of(1, Recompute::none) / (34 + row.scores), 1, 0.003);
    EXPECT_NEAR(of(8, Recompute::none) / (10 + 24 / 8.0 + row.scores / 8), 1, 0.003);
    EXPECT_NEAR(of(8, Recompute::selective) / 13, 1, 0.003);
    EXPECT_EQ(of(8, Recompute::full), 2);
    // This program keeps neither scores nor masks: 34 minus one byte for each of two dropouts.
    EXPECT_NEAR(kept_of_a_layer(config, "concertina", {}) / 32, 1, 0.003);
    EXPECT_EQ(kept_of_a_layer(config, "concertina", {.recompute = Recompute::full}), 4);
  }
}

/// Sizes and FLOPs of published models, from the recipes, and their layouts for 64 and 1,024 GPUs,
/// found quickly.
TEST(UnitCosts, RecipesAreThePublishedModels) {
  struct Recipe {
    const char* file;
    double parameters;  // millions
    double flops;       // 1e9, of the forward pass of one sample
    std::vector<const char*> machines;
  };
  const double llama_matrices = 8030.3e6 - 128256 * 4096.0;  // all but the token table
  const Recipe recipes[] = {
      // Dubey et al. 2024: 8.03B. torchtitan counts 6 N + 12 l h q t FLOPs per token, forward and
      // backward: a third of it.
      {"llama-8b",
       8030.3,
       8192 * (2 * llama_matrices + 4.0 * 32 * 4096 * 8192) * 1e-9,
       {"h100", "a100-80gb"}},
      // Devlin et al. 2019: 340M; without what the head for masked tokens omits, 335.2M
      // (transformers' BertForMaskedLM). 24 layers with 24 s h^2 + 4 s^2 h each, as in ELECTRA's
      // 7.9e10 for 128 tokens (Clark et al. 2020); the last MLP and the head process 77 masked
      // tokens.
      {"bert-large",
       335.2,
       (24 * (24.0 * 512 * 1024 * 1024 + 4.0 * 512 * 512 * 1024) - 16.0 * (512 - 77) * 1024 * 1024 +
        2.0 * 77 * 1024 * (1024 + 30522)) *
           1e-9,
       {"a100-80gb"}},
      // Dosovitskiy et al. 2021: 632M; timm gives 167.4 GMACs at 224 pixels, with the last MLP on
      // all 257 rows, only one of which the head reads.
      {"vit-huge", 632.0, 2 * 167.4 - 256 * 16 * 1280 * 1280e-9, {"a100-80gb"}}};
  for (const Recipe& recipe : recipes) {
    const RunConfig config =
        load_config({std::string(CONCERTINA_RECIPES) + "/" + recipe.file + ".toml"}, {});
    const ModelSpec model = model_of(config)->spec();
    EXPECT_NEAR(static_cast<double>(parameter_count(make_buckets(model))) * 1e-6, recipe.parameters,
                0.001 * recipe.parameters)
        << recipe.file;
    EXPECT_NEAR(model_flops(model, 1) / 3e9, recipe.flops, 0.01 * recipe.flops) << recipe.file;
    for (const char* machine : recipe.machines)
      for (const int world : {64, 1024}) {
        const double start = cpu_seconds();
        const auto report = search_report(config, {.world = world, .machine = machine, .top = 5});
        const double seconds = cpu_seconds() - start;
        const auto& best = report["layouts"][0];
        std::printf("%s on %d of %s: %.1f s of CPU; %.3g s a step, MFU %.0f%%, %s\n", recipe.file,
                    world, machine, seconds, best["step_s"].get<double>(),
                    100 * best["mfu"].get<double>(), best["text"].get<std::string>().c_str());
        EXPECT_EQ(report["layouts"].size(), 5U);
        for (const auto& layout : report["layouts"]) {
          EXPECT_GT(layout["mfu"].get<double>(), 0.05);
          EXPECT_LT(layout["mfu"].get<double>(), 0.75);  // its own rate of products is 0.71
          EXPECT_GE(layout["memory"]["margin_bytes"].get<double>(), 0);
        }
        EXPECT_LT(seconds, 20);
      }
  }
}

}  // namespace
}  // namespace concertina
