// Compares optimizers and lr schedules with PyTorch or papers' formulas (tests/golden/rules.json).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/lr_schedule.h"
#include "models/optimizer.h"
#include "tests/models/golden_file.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

/// Returns the largest difference, relative to the largest weight.
double farthest(const Buffer& w, const nlohmann::json& expected) {
  double most = 0, size = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(w.data()[i]) - expected[i].get<double>()));
    size = std::max(size, std::abs(expected[i].get<double>()));
  }
  return most / size;
}

/// The optimizer's state for `tensor`, and its scratch memory.
struct Tools {
  Tools(const Optimizer& rule, Backend& backend, const BucketTensor& tensor)
      : made(rule.tools(backend, std::array{&tensor})) {
    if (made == nullptr) return;
    scratch = buffer_of_bytes(made->scratch_bytes());
    workspace = buffer_of_bytes(backend.workspace_bytes());
    made->attach(scratch.data());
    backend.set_workspace(workspace.data());
  }
  std::unique_ptr<UpdateTools> made;
  Buffer scratch, workspace;
};

BucketTensor tensor_of(const nlohmann::json& golden) {
  BucketTensor tensor;
  tensor.shape = golden["shape"].get<std::vector<std::int64_t>>();
  tensor.decay = golden.value("decay", true);
  tensor.matrices = golden.value("matrices", std::vector<std::int64_t>());
  return tensor;
}

void replay_updates(const nlohmann::json& golden, Backend& backend) {
  const auto rule =
      make_optimizer(golden["name"].get<std::string>(), {.weight_decay = golden["weight_decay"],
                                                         .ema = golden.value("ema", 0.0),
                                                         .options = options_of(golden["options"])});
  const BucketTensor tensor = tensor_of(golden);
  const Tools tools(*rule, backend, tensor);
  const Buffer w(golden["start"].get<std::vector<float>>());
  std::vector<Buffer> states;
  for (std::size_t k = 0; k < rule->state_names().size(); ++k)
    states.emplace_back(std::vector<float>(w.size()));
  std::vector<View> views;
  for (const Buffer& state : states) views.push_back(state.view());
  for (std::size_t i = 0; i < golden["gradients"].size(); ++i) {
    // Half of the gradient is multiplied by the scale, as clipping does.
    auto gradient = golden["gradients"][i].get<std::vector<float>>();
    for (float& g : gradient) g *= 2;
    const Buffer g(gradient);
    rule->update(backend, {static_cast<std::int64_t>(i + 1), golden["lr"].get<double>(), 0.5F},
                 {.w = w.view(),
                  .states = views,
                  .g = g.view(),
                  .decay = tensor.decay,
                  .tensor = &tensor,
                  .tools = tools.made.get()});
    backend.synchronize();
    EXPECT_LE(farthest(w, golden["weights"][i]), 1e-6) << "step " << i + 1;
    if (golden.contains("averages")) {
      EXPECT_LE(farthest(states.back(), golden["averages"][i]), 1e-6) << "step " << i + 1;
    }
  }
}

TEST(RulesGolden, OptimizersTakeTheStepsOfPyTorchAndThePapers) {
  const auto oracle = make_oracle_backend(), cpu = make_cpu_backend(1);
  const nlohmann::json rules = golden_json("rules");
  for (const nlohmann::json& golden : rules["optimizers"]) {
    SCOPED_TRACE(golden["name"].get<std::string>() + " " + golden["options"].dump());
    replay_updates(golden, *oracle);
    replay_updates(golden, *cpu);
  }
}

TEST(RulesGolden, SchedulesHaveTheRatesOfPyTorchAndThePapers) {
  const nlohmann::json rules = golden_json("rules");
  for (const nlohmann::json& golden : rules["schedules"]) {
    SCOPED_TRACE(golden["name"].get<std::string>() + " " + golden["options"].dump());
    const LrSchedule lr = make_lr_schedule(golden["name"].get<std::string>(),
                                           {.peak = 1,
                                            .steps = golden["steps"],
                                            .warmup = golden["warmup"],
                                            .min = golden["min"],
                                            .options = options_of(golden["options"])});
    const std::int64_t first = golden["first"], steps = golden["steps"];
    ASSERT_EQ(std::ssize(golden["rates"]), steps - first + 1);
    for (std::int64_t step = first; step <= steps; ++step)
      EXPECT_NEAR(
          lr.rate(step),
          std::max(golden["rates"][static_cast<std::size_t>(step - first)].get<double>(),
                   step > golden["warmup"].get<std::int64_t>() ? golden["min"].get<double>() : 0),
          1e-6)
          << step;
  }
}

/// Every registered entry was compared, except the three with their own tests.
TEST(RulesGolden, LeaveNoneOut) {
  const nlohmann::json rules = golden_json("rules");
  const auto has = [&](const char* kind, std::string_view name) {
    for (const nlohmann::json& golden : rules[kind])
      if (golden["name"].get<std::string>() == name) return true;
    return false;
  };
  for (const std::string_view name : names_of(optimizers()))
    EXPECT_TRUE(name == "adamw" || has("optimizers", name)) << name;
  for (const std::string_view name : names_of(lr_schedules()))
    EXPECT_TRUE(name == "constant" || name.starts_with("cosine") || has("schedules", name)) << name;
}

}  // namespace
}  // namespace concertina
