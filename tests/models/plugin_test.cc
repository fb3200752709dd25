// An optimizer, an lr schedule and a model from outside models/: each is one file in plugins/ and
// one word in meson.build. They are found by name and train together like the built-in ones.
#include <gtest/gtest.h>

#include "models/lr_schedule.h"
#include "models/optimizer.h"
#include "tests/models/local_pipeline.h"

namespace concertina {
namespace {

TEST(PluginTest, NamesStandBesideTheBuiltIn) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(names_of(models()), (Names{"gpt", "mlp_only"}));
  EXPECT_EQ(names_of(optimizers()), (Names{"adamw", "sgd"}));
  EXPECT_EQ(names_of(lr_schedules()), (Names{"cosine", "cosine-restarts", "constant", "linear"}));
}

TEST(PluginTest, LinearFallsInALine) {
  const LrSchedule lr = make_lr_schedule("linear", {.peak = 1, .steps = 10, .min = 0.5});
  for (int step = 1; step <= 10; ++step) EXPECT_NEAR(lr.rate(step), 1 - 0.05 * step, 1e-12);
}

/// Next token = token + 1: SGD on the small model learns it, in any cut.
TEST(PluginTest, AllThreeTrainTogether) {
  const ModelConfig config{
      .layers = 1, .width = 16, .heads = 1, .context = 8, .vocab = 10, .samples = 4};
  const auto model = make_model("mlp_only", config);
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model, {0, 1, 3});
  pipeline.initialize(1);
  const auto rule = make_optimizer("sgd", {.weight_decay = 0.01});
  const LrSchedule lr = make_lr_schedule("linear", {.peak = 0.5, .steps = 60, .warmup = 5});
  std::vector<Buffer> momentum;
  for (const Bucket& bucket : pipeline.buckets())
    momentum.emplace_back(std::vector<float>(bucket.elements));
  Data data(3);
  double first = 0, last = 0;
  for (int step = 1; step <= 60; ++step) {
    const Buffer tokens = data.integers(32, 0, 9);
    const Buffer targets(32, DType::i32);
    for (std::size_t i = 0; i < 32; ++i)
      targets.view().i32()[i] = (tokens.view().i32()[i] + 1) % 10;
    GradientStore store(pipeline.buckets());
    last = pipeline.train(tokens.view(), targets.view(), 1.0F / 32, 0, store) / 32;
    if (step == 1) first = last;
    for (std::size_t b = 0; b < pipeline.buckets().size(); ++b) {
      const Buffer total(store.total(static_cast<int>(b)));
      rule->update(*backend, {step, lr.rate(step), 1}, true, pipeline.weights()[b].view(),
                   std::array{momentum[b].view()}, total.view());
    }
    pipeline.refresh();
  }
  EXPECT_GT(first, 1.5);
  EXPECT_LT(last, 0.1);
}

}  // namespace
}  // namespace concertina
