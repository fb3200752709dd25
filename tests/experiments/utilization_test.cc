// Model FLOPs of every family and task equal those of a step's kernels. FLOPs of published models
// are tested in plan_command/unit_costs_test.cc.
#include "experiments/record/launch_metrics.h"

#include <gtest/gtest.h>

#include "core/backend_around.h"
#include "experiments/bench/random_samples.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/planning.h"
#include "tests/experiments/config_text.h"
#include "tests/models/local_pipeline.h"

namespace concertina {
namespace {

TEST(Utilization, PeakRatesAreThoseOfDataSheets) {
  RunConfig config;
  EXPECT_EQ(peak_flops_per_s(config, "NVIDIA H100 80GB HBM3"), 0);  // runs on the CPU
  config.run.device = "cuda";
  config.numerics.compute = "bf16";
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "cuda: NVIDIA H200, 141 GB"), 989.5e12);
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "NVIDIA H100 PCIe"), 756.5e12);
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "NVIDIA A100-SXM4-80GB"), 312e12);
  EXPECT_EQ(peak_flops_per_s(config, "NVIDIA GeForce GTX 1080"), 0);
  config.numerics.compute = "fp8";
  EXPECT_EQ(peak_flops_per_s(config, "NVIDIA A100-SXM4-80GB"), 0);
  config.run.peak_tflops = 5;
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "NVIDIA A100-SXM4-80GB"), 5e12);
}

class CountedProducts final : public BackendAround {
 public:
  using BackendAround::BackendAround;
  double flops = 0;

 private:
  void before(Op& op) override { flops += flops_of(op); }
};

/// Returns the FLOPs of the kernels that train one microbatch.
double flops_done(const RunConfig& config) {
  const std::unique_ptr<Model> model = model_of(config);
  const ModelSpec& spec = model->spec();
  RandomSamples samples(config, spec);
  std::vector<Buffer> buffers;
  for (const Field& field : samples.fields())
    buffers.emplace_back(static_cast<std::size_t>(field.elements() * spec.samples), field.type);
  const std::vector<View> fields = views_of(buffers);
  samples.load(1, 0, spec.samples, fields);
  CountedProducts backend(make_cpu_backend(1));
  LocalPipeline pipeline(backend, *model);
  pipeline.initialize(1);
  GradientStore store(pipeline.buckets());
  backend.flops = 0;
  pipeline.train(fields, 1, 0, store);
  return backend.flops;
}

TEST(Utilization, CountsTheProductsOfEveryFamilyAndTask) {
  const std::vector<std::vector<std::string>> models = {
      {"model.family=gpt"},
      {"model.family=gpt", "model.task=classification"},
      {"model.family=llama", "model.llama.kv_heads=2", "model.llama.hidden=40"},
      {"model.family=llama", "model.task=classification", "model.classes=5"},
      {"model.family=bert"},
      {"model.family=bert", "model.task=classification", "model.bert.hidden=48"},
      {"model.family=bert", "model.task=question-answering"},
      {"model.family=vit", "model.classes=10", "model.vit.image=16", "model.vit.patch=4"}};
  for (std::vector<std::string> sets : models) {
    sets.insert(sets.end(),
                {"model.layers=2", "model.width=32", "model.heads=4", "model.context=12",
                 "model.vocab=50", "batch.global=6", "batch.microbatches=2"});
    const RunConfig config = load_config({}, sets);
    const ModelSpec model = job_of(config).model;
    const bool causal = config.model.family == "gpt" || config.model.family == "llama";
    // FLOPs hidden by a causal mask are counted but not executed; an image has no gradient.
    AttentionShape attention{.samples = 3, .tokens = 12, .heads = 4, .head_dim = 8};
    attention.causal = false;
    double hidden = 2 * attention_product_flops(attention);
    attention.causal = true;
    hidden = causal ? 3 * 2 * (hidden - 2 * attention_product_flops(attention)) : 0;
    const double image = config.model.family == "vit" ? model.units[0].cost.model_flops : 0;
    EXPECT_NEAR(model_flops(model, 1) / (flops_done(config) + hidden + image), 1, 1e-12)
        << sets[0] << " " << sets[1];
    EXPECT_EQ(model_flops(model, 2), 2 * model_flops(model, 1));
    sets.push_back("parallel.recompute=full");  // recomputation is counted once
    EXPECT_EQ(model_flops(job_of(load_config({}, sets)).model, 1), model_flops(model, 1));
  }
}

}  // namespace
}  // namespace concertina
