#include "models/model_stage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <span>

#include "tests/errors.h"
#include "tests/models/local_pipeline.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

const ModelConfig kConfig{
    .layers = 2, .width = 20, .heads = 4, .context = 11, .vocab = 37, .samples = 2};
constexpr int kMicrobatches = 3;

struct Setting {
  DType compute = DType::f32;
  double dropout = 0;
  int frozen = 0;
  std::vector<std::string> recompute{};
};

ModelConfig config_of(const Setting& setting) {
  ModelConfig config = kConfig;
  config.precision = setting.compute;
  config.dropout = setting.dropout;
  config.recompute = setting.recompute;
  return config;
}

struct Sample {
  Buffer tokens, targets;
};
Sample sample_of(Data& data, int least_target = 0) {
  Buffer tokens = data.integers(22, 0, 36);
  return {std::move(tokens), data.integers(22, least_target, 36)};
}

/// Losses and gradients of several microbatches, compared bit by bit.
struct Result {
  std::vector<double> losses;
  std::vector<std::vector<float>> gradients;
  bool operator==(const Result& other) const {
    return losses == other.losses &&
           std::ranges::equal(gradients, other.gradients, [](const auto& a, const auto& b) {
             return a.size() == b.size() &&
                    (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
           });
  }
};

using MakeBackend = std::function<std::unique_ptr<Backend>()>;
const MakeBackend kOracle = make_oracle_backend, kCpu = [] { return make_cpu_backend(1); },
                  kBaseline = [] { return make_cpu_backend(1, "baseline"); };

Result run(Backend& backend, const Setting& setting = {}, const std::vector<int>& cuts = {0},
           LocalPipeline::Backward backward = LocalPipeline::Backward::joint) {
  const auto model = make_model("gpt", config_of(setting));
  LocalPipeline pipeline(backend, *model, cuts, setting.frozen);
  pipeline.initialize(5);
  GradientStore store(pipeline.buckets());
  Data data(9);
  Result result;
  for (int m = 0; m < kMicrobatches; ++m) {
    const auto [tokens, targets] = sample_of(data, -1);
    result.losses.push_back(
        pipeline.train(tokens.view(), targets.view(), 0.01F, m, store, backward));
  }
  store.expect_complete(kMicrobatches);
  result.gradients = store.totals();
  return result;
}

/// Checks all cuts, with joint and separate I and W. `make` creates a new backend each time, since
/// a backend's workspace belongs to one pipeline.
void expect_same_bits(const MakeBackend& make, const Setting& setting, const Result& expected) {
  SCOPED_TRACE(fmt::format("{}, {}, dropout {}, {} frozen, again: {}", make()->describe(),
                           name_of(setting.compute), setting.dropout, setting.frozen,
                           fmt::join(setting.recompute, " ")));
  for (const auto& cuts :
       std::vector<std::vector<int>>{{0}, {0, 3}, {0, 1}, {0, 5}, {0, 2, 3}, {0, 1, 2, 3, 4, 5}})
    for (const auto backward : {LocalPipeline::Backward::joint, LocalPipeline::Backward::separate})
      EXPECT_TRUE(run(*make(), setting, cuts, backward) == expected)
          << cuts.size() << " stages, separate: " << static_cast<int>(backward);
}

TEST(ModelStageTest, CutsAndSeparationNeverChangeABit) {
  for (const MakeBackend& make : {kOracle, kCpu, kBaseline})  // bf16 in hardware, and emulated
    for (const DType compute : {DType::f32, DType::bf16})
      for (const double dropout : {0.0, 0.2}) {
        const Setting setting{compute, dropout};
        const Result whole = run(*make(), setting);
        for (const double loss : whole.losses) EXPECT_GT(loss, 0);
        for (const auto& gradient : whole.gradients)
          for (const float value : gradient) ASSERT_TRUE(std::isfinite(value));
        expect_same_bits(make, setting, whole);
      }
}

/// The whole model is close to the oracle, which drops and rounds the same elements.
TEST(ModelStageTest, IsNearTheOracle) {
  for (const auto& [setting, loss, gradient] : {std::tuple{Setting{}, 1e-5, 1e-4},
                                                {Setting{.dropout = 0.2}, 1e-5, 1e-4},
                                                {Setting{.compute = DType::bf16}, 2e-3, 3e-2}}) {
    const Result expected = run(*kOracle(), setting);
    for (const MakeBackend& make : {kCpu, kBaseline}) {
      const Result got = run(*make(), setting, {0, 3});
      EXPECT_LE(relative_error(got.losses, expected.losses), loss) << setting.dropout;
      for (std::size_t b = 0; b < expected.gradients.size(); ++b)
        EXPECT_LE(relative_error(got.gradients[b], expected.gradients[b]), gradient) << b;
    }
  }
}

/// The settings that a loss depends on.
struct Case {
  double dropout = 0.2;
  int frozen = 0;
  std::uint64_t seed = 3;
  std::int64_t step = 1;
  int microbatch = 0;
  bool training = true;
};

double loss_of(const Case& one) {
  const auto model = make_model("gpt", config_of({.dropout = one.dropout}));
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model, {0, 3}, one.frozen);
  pipeline.initialize(5);
  for (const char* name : {"001.attention/proj.weight", "002.mlp/down.weight"})  // as if trained
    for (float& w : std::span(pipeline.weight(name).f32(), pipeline.weight(name).count))
      w *= 30;  // so that their output matters
  pipeline.refresh();
  pipeline.set_random(one.seed, one.step);
  Data data(9);
  const auto [tokens, targets] = sample_of(data);
  GradientStore store(pipeline.buckets());
  std::vector<float> logits;
  return one.training ? pipeline.train(tokens.view(), targets.view(), 0.01F, one.microbatch, store)
                      : pipeline.evaluate(tokens.view(), targets.view(), logits);
}

TEST(ModelStageTest, DropoutIsOfTrainingAloneAndFollowsFromSeedStepAndMicrobatch) {
  const double whole = loss_of({.dropout = 0});
  EXPECT_EQ(loss_of({.training = false}), whole);
  EXPECT_EQ(loss_of({}), loss_of({}));
  std::set<double> losses{whole};
  const Case cases[] = {{}, {.dropout = 0.3}, {.seed = 4}, {.step = 2}, {.microbatch = 1}};
  for (const Case& one : cases) losses.insert(loss_of(one));
  EXPECT_EQ(losses.size(), 1 + std::size(cases));
}

/// Units 0 to 4 of 6 have dropout: embedding, two attention and two MLP half-blocks.
TEST(ModelStageTest, FrozenUnitsDropNothing) {
  std::set<double> losses;
  for (int frozen = 0; frozen < 6; ++frozen)
    EXPECT_TRUE(losses.insert(loss_of({.frozen = frozen})).second) << frozen;
  EXPECT_TRUE(losses.contains(loss_of({.dropout = 0})));
}

/// Trained units get the same gradients as without freezing, frozen tensors none.
TEST(ModelStageTest, FrozenUnitsChangeNoOtherGradient) {
  for (const MakeBackend& make : {kOracle, kCpu}) {
    const Result whole = run(*make());
    for (int frozen = 1; frozen < 6; ++frozen) {
      const auto buckets = make_buckets(make_model("gpt", kConfig)->spec(), frozen);
      Result expected = whole;
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        EXPECT_EQ(buckets[b].frozen, buckets[b].uses.front() < frozen);
        if (buckets[b].frozen) expected.gradients[b].clear();
      }
      expect_same_bits(make, {.frozen = frozen}, expected);
    }
  }
}

TEST(ModelStageTest, WhatIsComputedAgainHasTheSameBits) {
  for (const int frozen : {0, 2})
    for (const double dropout : {0.0, 0.25}) {
      const Result expected = run(*kCpu(), {.dropout = dropout, .frozen = frozen});
      for (const char* words : {"full", "attention", "mlp", "2-3"})
        expect_same_bits(kCpu, {.dropout = dropout, .frozen = frozen, .recompute = {words}},
                         expected);
      expect_same_bits(kCpu, {.dropout = dropout, .frozen = frozen, .recompute = {"1", "4"}},
                       expected);
    }
}

TEST(ModelStageTest, AUnitThatCannotComputeAgainIsRefused) {
  for (const std::string word :
       {"0", "5", "6", "0-1", "4-2", "head", "", "-1", "1-", "99999999999"}) {
    const Error error = input_error([&] { make_model("gpt", config_of({.recompute = {word}})); });
    EXPECT_EQ(error.where(), "parallel.recompute");
    expect_has(error.fix(), "attention, mlp");
  }
}

/// Microbatch 0 overwrites and the others accumulate, in every tensor of every unit.
TEST(ModelStageTest, GradientsOfMicrobatchesAddUp) {
  const auto model = make_model("gpt", kConfig);
  const auto backend = make_oracle_backend();
  LocalPipeline pipeline(*backend, *model, {0, 3});
  pipeline.initialize(5);
  GradientStore together(pipeline.buckets());
  std::vector<std::vector<float>> sums;
  Data data(8);
  for (int m = 0; m < kMicrobatches; ++m) {
    const auto [tokens, targets] = sample_of(data);
    GradientStore alone(pipeline.buckets());
    pipeline.train(tokens.view(), targets.view(), 0.01F, m, together);
    pipeline.train(tokens.view(), targets.view(), 0.01F, 0, alone);
    const auto one = alone.totals();
    sums.resize(one.size());
    for (std::size_t b = 0; b < sums.size(); ++b) {
      sums[b].resize(one[b].size());
      std::ranges::transform(sums[b], one[b], sums[b].begin(), std::plus());
    }
  }
  for (std::size_t b = 0; b < sums.size(); ++b)
    for (const BucketTensor& tensor : pipeline.buckets()[b].tensors) {
      const std::vector<float> total = together.total(static_cast<int>(b));
      EXPECT_LE(relative_error(std::span(total).subspan(tensor.offset, tensor.count),
                               std::span(sums[b]).subspan(tensor.offset, tensor.count)),
                1e-6)
          << tensor.name;
    }
}

TEST(ModelStageTest, WeightsCountOnlyOnceRefreshed) {
  const auto model = make_model("gpt", kConfig);
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model);
  pipeline.initialize(1);
  Data data(4);
  const auto [tokens, targets] = sample_of(data);
  std::vector<float> before, after;
  const double loss = pipeline.evaluate(tokens.view(), targets.view(), before);
  EXPECT_EQ(before.size(), 22U * 37U);
  EXPECT_NEAR(loss / 22, std::log(37.0), 0.2) << "a new model predicts at random";
  const View up = pipeline.weight("002.mlp/up.weight");
  for (std::size_t i = 0; i < up.count; ++i) up.f32()[i] *= 3;
  pipeline.refresh();
  pipeline.evaluate(tokens.view(), targets.view(), after);
  EXPECT_NE(before, after);
}

TEST(ModelStageTest, OnlyTheLastStageHasALoss) {
  const auto model = make_model("gpt", kConfig);
  const auto backend = make_oracle_backend();
  const LocalPipeline pipeline(*backend, *model, {0, 3});
  EXPECT_THROW(pipeline.stages().front()->row_loss({}), Error);
  EXPECT_THROW(pipeline.stages().front()->logits({}), Error);
}

/// Compares the slope along the whole model's gradient, with dropout, with a difference of losses.
TEST(ModelStageTest, GradientPointsUphill) {
  const auto model = make_model("gpt", config_of({.dropout = 0.2}));
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model, {0, 3});
  pipeline.initialize(2);
  Data data(6);
  const auto [tokens, targets] = sample_of(data);
  GradientStore store(pipeline.buckets());
  pipeline.train(tokens.view(), targets.view(), 1, 0, store);
  const std::vector<std::vector<float>> gradients = store.totals();
  std::vector<std::vector<float>> start;
  for (const Buffer& weights : pipeline.weights()) start.push_back(weights.values());
  double slope = 0;
  for (const auto& gradient : gradients)
    for (const float g : gradient) slope += static_cast<double>(g) * static_cast<double>(g);
  const double step = 0.002 / std::sqrt(slope);  // along the gradient: d loss / d step = slope
  double difference = 0;
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t b = 0; b < start.size(); ++b)
      for (std::size_t i = 0; i < gradients[b].size(); ++i)
        pipeline.weights()[b].data()[i] =
            start[b][i] + static_cast<float>(sign * step) * gradients[b][i];
    pipeline.refresh();
    GradientStore unused(pipeline.buckets());
    difference += sign * pipeline.train(tokens.view(), targets.view(), 1, 0, unused);
  }
  EXPECT_NEAR(difference / (2 * step) / slope, 1, 5e-4);
}

}  // namespace
}  // namespace concertina
