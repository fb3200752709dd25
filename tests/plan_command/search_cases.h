// Inputs of `plan search` that its tests share.
#pragma once

#include <string>
#include <vector>

#include "experiments/predict/search_report.h"
#include "tests/experiments/config_text.h"

namespace concertina {

/// Uses bf16 on GPUs.
inline RunConfig gpt(int layers, int width, int heads, int batch, int vocabulary = 51200) {
  RunConfig config;
  config.model = {
      .layers = layers, .width = width, .heads = heads, .context = 2048, .vocab = vocabulary};
  config.batch = {batch, batch};
  config.numerics.compute = "bf16";
  config.run.device = "cuda";
  return config;
}

inline PlanProblem problem_of(const RunConfig& config, double memory,
                              const char* software = "concertina") {
  PlanProblem problem = search_problem(config, {.machine = "a100-80gb", .software = software});
  problem.memory = memory;
  return problem;
}

/// 12 layers on 16 devices of 2 hosts.
inline RunConfig small_gpt() {
  return gpt(12, 1024, 16, 32);
}
inline SearchSpace small_space() {
  return {.world = 16, .ranks_per_host = 8};
}

/// Returns a model of each family whose memory is mostly tensors.
inline std::vector<RunConfig> families() {
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

}  // namespace concertina
