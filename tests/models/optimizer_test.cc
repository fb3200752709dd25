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

TEST(OptimizerTest, AnUnknownNameIsRefused) {
  EXPECT_EQ(input_error([] { make_optimizer("adam", {}); }).where(), "optimizer.name");
}

/// A lasso problem: 30 rows of 5 columns that are not orthogonal.
double column(int i, int j) {
  return std::sin(i * (j + 1.0));
}
double target(int i) {
  return 0.5 * std::cos(i) + std::sin(2.0 * i) - 0.3 * std::sin(5.0 * i);
}

TEST(L1Test, ReachesTheOptimumOfALasso) {
  // sklearn.linear_model.Lasso(alpha=0.05, fit_intercept=False, tol=1e-14), version 1.9.1
  const std::vector<double> optimum{0, 0.9148025703897505, 0, 0, -0.2944984746512403};
  OptimizerConfig config{.weight_decay = 0, .l1 = 0.05};
  config.options["momentum"] = 0.0;
  const auto rule = make_optimizer("sgd", config);
  const auto backend = make_oracle_backend();
  const Buffer w(std::vector<float>{1, -1, 1, -1, 1}), m(std::vector<float>(5));
  for (int step = 1; step <= 300; ++step) {
    std::vector<float> gradient(5);
    for (int i = 0; i < 30; ++i) {
      double error = -target(i);
      for (int j = 0; j < 5; ++j) error += column(i, j) * static_cast<double>(w.data()[j]);
      for (int j = 0; j < 5; ++j)
        gradient[static_cast<std::size_t>(j)] += static_cast<float>(error * column(i, j) / 30);
    }
    const Buffer g(gradient);
    rule->update(*backend, {step, 0.5, 1},
                 {.w = w.view(), .states = std::array{m.view()}, .g = g.view(), .decay = true});
  }
  for (std::size_t j = 0; j < 5; ++j) {
    EXPECT_NEAR(static_cast<double>(w.data()[j]), optimum[j], 1e-5) << j;
    EXPECT_EQ(w.data()[j] == 0, optimum[j] == 0) << j;
  }
}

TEST(KeepZerosTest, ZerosOfMatricesStayZero) {
  for (const char* name : {"adamw", "sgd", "lion", "lamb"}) {
    const auto rule = make_optimizer(name, {.keep_zeros = true});
    const auto backend = make_oracle_backend();
    for (const bool decay : {true, false}) {
      const Buffer w(std::vector<float>{2, 0, -1, 0}), m(std::vector<float>{1, 1, 1, 1}),
          v(std::vector<float>{1, 1, 1, 1});
      const std::array states{m.view(), v.view()};
      for (int step = 2; step < 6; ++step) {
        const Buffer g(std::vector<float>{1, -2, 3, 4});
        rule->update(*backend, {step, 0.1, 1},
                     {.w = w.view(),
                      .states = std::span(states).first(rule->state_names().size()),
                      .g = g.view(),
                      .decay = decay});
      }
      for (const std::size_t pruned : {1, 3}) EXPECT_EQ(w.data()[pruned] == 0, decay) << name;
      for (const std::size_t kept : {0, 2}) EXPECT_NE(w.data()[kept], 0) << name;
    }
  }
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
