// An optimizer, an lr schedule, a model and a task from outside models/: each is one file in
// plugins/ and one word in meson.build. They are found by name and can be trained like the built-in
// ones.
#include <gtest/gtest.h>

#include "models/lr_schedule.h"
#include "models/optimizer.h"
#include "models/task.h"
#include "tests/models/local_pipeline.h"

namespace concertina {
namespace {

const ModelConfig kTiny{
    .layers = 1, .width = 16, .heads = 1, .context = 8, .vocab = 10, .samples = 4};

TEST(PluginTest, NamesStandBesideTheBuiltIn) {
  EXPECT_EQ(names_of(models()).front(), "gpt");
  EXPECT_EQ(names_of(models()).back(), "mlp_only");
  EXPECT_EQ(names_of(tasks()).front(), "causal-lm");
  EXPECT_EQ(names_of(tasks()).back(), "parity");
  EXPECT_EQ(names_of(optimizers()).front(), "adamw");
  EXPECT_EQ(names_of(optimizers()).back(), "unit_steps");
  EXPECT_EQ(names_of(lr_schedules()).front(), "cosine");
  EXPECT_EQ(names_of(lr_schedules()).back(), "plateaus");
}

/// The option of a family is known together with it, and its default applies if it is not set.
TEST(PluginTest, AFamilyHasOptionsOfItsOwn) {
  ModelConfig config = kTiny;
  const auto columns = [&] {
    return make_model("mlp_only", config)->spec().units[1].parameters[2].shape[1];
  };
  EXPECT_EQ(columns(), 64);
  config.options["widening"] = std::int64_t{2};
  EXPECT_EQ(columns(), 32);
}

/// Units describe themselves, so a family composed of existing units also has a graph.
TEST(PluginTest, AFamilyIsAGraphForNothing) {
  const Graph graph = make_model("mlp_only", kTiny)->describe();
  ASSERT_EQ(graph.inputs.size(), 2U);
  EXPECT_EQ(graph.inputs[0].name, "input_ids");
  EXPECT_EQ(graph.inputs[1].name, "position_ids");
  ASSERT_EQ(graph.outputs.size(), 1U);
  EXPECT_EQ(graph.outputs[0].name, "logits");
  EXPECT_EQ(std::get<std::int64_t>(graph.outputs[0].shape[2]), 10);
}

/// Returns the mean losses of the first and last of 60 steps; each target follows from its token.
std::pair<double, double> trained(const std::string& family, const std::string& task,
                                  const std::vector<int>& cuts, int (*target)(int token),
                                  const LrConfig& rate) {
  ModelConfig config = kTiny;
  config.task = task;
  const auto model = make_model(family, config);
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model, cuts);
  pipeline.initialize(1);
  const auto rule = make_optimizer("heavy_ball", {.weight_decay = 0.01});
  const LrSchedule lr = make_lr_schedule("plateaus", rate);
  std::vector<Buffer> momentum;
  for (const Bucket& bucket : pipeline.buckets())
    momentum.emplace_back(std::vector<float>(bucket.elements));
  Data data(3);
  std::vector<double> losses;
  for (int step = 1; step <= rate.steps; ++step) {
    const Buffer tokens = data.integers(32, 0, 9), targets(32, DType::i32);
    std::transform(tokens.view().i32(), tokens.view().i32() + 32, targets.view().i32(), target);
    GradientStore store(pipeline.buckets());
    losses.push_back(pipeline.train(tokens.view(), targets.view(), 1.0F / 32, 0, store) / 32);
    for (std::size_t b = 0; b < pipeline.buckets().size(); ++b) {
      const Buffer total(store.total(static_cast<int>(b)));
      rule->update(*backend, {step, lr.rate(step), 1},
                   {.w = pipeline.weights()[b].view(),
                    .states = std::array{momentum[b].view()},
                    .g = total.view(),
                    .decay = true});
    }
    pipeline.refresh();
  }
  return {losses.front(), losses.back()};
}

/// The task's head works with a family of the project and with one from outside.
TEST(PluginTest, ATaskEndsAnyFamily) {
  for (const std::string family : {"gpt", "mlp_only"}) {
    ModelConfig config = kTiny;
    config.task = "parity";
    EXPECT_EQ(make_model(family, config)->spec().units.back().parameters[2].shape,
              (std::vector<std::int64_t>{16, 2}));
    const auto [first, last] = trained(family, "parity", {0}, [](int token) { return token % 2; },
                                       {.peak = 0.05, .steps = 60, .min = 1});
    EXPECT_LT(last, 0.2) << family;
  }
}

/// Next token = token + 1: SGD learns this with the small model, at any cut.
TEST(PluginTest, AllThreeTrainTogether) {
  const auto [first, last] =
      trained("mlp_only", "causal-lm", {0, 1}, [](int token) { return (token + 1) % 10; },
              {.peak = 0.5, .steps = 60, .warmup = 5});
  EXPECT_GT(first, 1.5);
  EXPECT_LT(last, 0.1);
}

TEST(PluginTest, AScheduleHasAKnobOfItsOwn) {
  LrConfig config{.peak = 1, .steps = 12, .min = 0.4};
  const LrSchedule default_value = make_lr_schedule("plateaus", config);
  config.options["count"] = std::int64_t{2};
  const LrSchedule halves = make_lr_schedule("plateaus", config);
  for (int step = 1; step <= 12; ++step) {
    EXPECT_NEAR(default_value.rate(step), 1 - 0.15 * (step / 3), 1e-12);
    EXPECT_NEAR(halves.rate(step), 1 - 0.3 * (step / 6), 1e-12);
  }
}

TEST(PluginTest, AnOptimizerHasAKnobOfItsOwn) {
  const auto backend = make_cpu_backend(1);
  for (const double momentum : {0.0, 0.5}) {
    const auto rule = make_optimizer("heavy_ball", {.options = {{"momentum", momentum}}});
    const Buffer w(std::vector<float>{1}), m(std::vector<float>{0}), g(std::vector<float>{1});
    for (int step = 1; step <= 2; ++step)
      rule->update(*backend, {step, 0.125, 1},
                   {.w = w.view(), .states = std::array{m.view()}, .g = g.view()});
    EXPECT_EQ(*w.data(), static_cast<float>(1 - 0.125 * (2 + momentum)));
  }
}

TEST(PluginTest, AnOptimizerOfWholeTensorsKnowsTheirNorm) {
  const auto backend = make_cpu_backend(1);
  const auto rule = make_optimizer("unit_steps", {});
  EXPECT_TRUE(rule->whole_tensors());
  const Buffer w(std::vector<float>{1, 1}), g(std::vector<float>{3, -4});
  rule->update(*backend, {1, 0.5, 1}, {.w = w.view(), .g = g.view()});
  EXPECT_FLOAT_EQ(w.data()[0], 0.7F);
  EXPECT_FLOAT_EQ(w.data()[1], 1.4F);
}

}  // namespace
}  // namespace concertina
