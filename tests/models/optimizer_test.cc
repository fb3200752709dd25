#include "models/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/buffer.h"
#include "tests/errors.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

TEST(AdamWTest, FollowsTheFormula) {
  const OptimizerConfig config{.beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.4};
  const auto rule = make_optimizer("adamw", config);
  EXPECT_EQ(rule->state_names(), (std::vector<std::string_view>{"m", "v"}));
  for (const bool decay : {false, true}) {
    const auto backend = make_oracle_backend();
    const Buffer w(std::vector<float>{2}), m(std::vector<float>{0}), v(std::vector<float>{0});
    double we = 2, me = 0, ve = 0;
    for (int step = 1; step <= 5; ++step) {
      const double gradient = std::sin(step), scale = 0.5, lr = 0.1 / step;
      const Buffer g(std::vector<float>{static_cast<float>(gradient)});
      rule->update(
          *backend, {step, lr, static_cast<float>(scale)},
          {.w = w.view(), .states = std::array{m.view(), v.view()}, .g = g.view(), .decay = decay});
      if (decay) we -= lr * 0.4 * we;
      me = 0.8 * me + 0.2 * gradient * scale;
      ve = 0.9 * ve + 0.1 * gradient * scale * gradient * scale;
      we -= lr * (me / (1 - std::pow(0.8, step))) /
            (std::sqrt(ve / (1 - std::pow(0.9, step))) + 1e-3);
      EXPECT_NEAR(static_cast<double>(*w.data()), we, 1e-6) << "step " << step;
    }
  }
}

TEST(OptimizerTest, BadValuesNameTheirKey) {
  const auto where = [](const char* name, const OptimizerConfig& config) {
    return input_error([&] { make_optimizer(name, config); }).where();
  };
  EXPECT_EQ(where("adam", {}), "optimizer.name");
  EXPECT_EQ(where("adamw", {.beta1 = 1}), "optimizer.betas");
  EXPECT_EQ(where("adamw", {.beta2 = -0.1}), "optimizer.betas");
  EXPECT_EQ(where("adamw", {.beta2 = std::nan("")}), "optimizer.betas");
  EXPECT_EQ(where("adamw", {.eps = 0}), "optimizer.eps");
  EXPECT_EQ(where("adamw", {.weight_decay = -1}), "optimizer.weight_decay");
  EXPECT_EQ(where("adamw", {.weight_decay = std::nan("")}), "optimizer.weight_decay");
}

TEST(OptimizerTest, MuonsProductsAreThoseOfItsMatrices) {
  OptimizerConfig config;
  config.options["iterations"] = std::int64_t{3};
  const auto muon = make_optimizer("muon", config);
  const ParameterSpec up{"up", {8, 32}, true, {}, "", {32}},
      heads{"qkv", {8, 24}, true, {}, "", {8, 8, 8}}, table{"table", {50, 8}, true, {}, ""};
  EXPECT_EQ(muon->update_flops(up), 3 * (4 * 8 * 32 * 8 + 2 * 8 * 8 * 8));
  EXPECT_EQ(muon->update_flops(heads), 3 * 3 * (4 * 8 * 8 * 8 + 2 * 8 * 8 * 8));
  EXPECT_EQ(muon->update_flops(table), 0);
  EXPECT_EQ(make_optimizer("adamw", {})->update_flops(up), 0);
}

TEST(ClipTest, ScalesOnlyWhatIsTooLong) {
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_EQ(clip_scale(0, 1), 1);
  EXPECT_EQ(clip_scale(100, 0), 1);
  EXPECT_FLOAT_EQ(clip_scale(4, 1), 0.25F);
}

}  // namespace
}  // namespace concertina
