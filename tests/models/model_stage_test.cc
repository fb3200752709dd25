#include "models/model_stage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <span>

#include "core/backend_around.h"
#include "core/error.h"
#include "tests/models/local_pipeline.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

const ModelConfig kConfig{
    .layers = 2, .width = 20, .heads = 4, .context = 11, .vocab = 37, .samples = 2};
constexpr int kMicrobatches = 3;

ModelConfig in(DType compute, double dropout = 0) {
  ModelConfig config = kConfig;
  config.precision = compute;
  config.dropout = dropout;
  return config;
}

/// Losses and gradients of some microbatches.
struct Result {
  std::vector<double> losses;
  std::vector<std::vector<float>> gradients;
  bool operator==(const Result& other) const {
    if (losses != other.losses || gradients.size() != other.gradients.size()) return false;
    for (std::size_t b = 0; b < gradients.size(); ++b)
      if (gradients[b].size() != other.gradients[b].size() ||
          std::memcmp(gradients[b].data(), other.gradients[b].data(),
                      gradients[b].size() * sizeof(float)) != 0)
        return false;
    return true;
  }
};

Result run(Backend& backend, const std::vector<int>& cuts, LocalPipeline::Backward backward,
           int frozen = 0, DType compute = DType::f32, double dropout = 0,
           const std::vector<std::string>& recompute = {}) {
  ModelConfig config = in(compute, dropout);
  config.recompute = recompute;
  const auto model = make_model("gpt", config);
  LocalPipeline pipeline(backend, *model, cuts, frozen);
  pipeline.initialize(5);
  GradientStore store(pipeline.buckets());
  Data data(9);
  Result result;
  for (int m = 0; m < kMicrobatches; ++m) {
    const Buffer tokens = data.integers(22, 0, 36), targets = data.integers(22, -1, 36);
    result.losses.push_back(
        pipeline.train(tokens.view(), targets.view(), 0.01F, m, store, backward));
  }
  store.expect_complete(kMicrobatches);
  for (int b = 0; b < std::ssize(pipeline.buckets()); ++b)
    result.gradients.push_back(store.total(b));
  return result;
}

const std::vector<std::vector<int>> kCuts{{0, 6},    {0, 3, 6},    {0, 1, 6},
                                          {0, 5, 6}, {0, 2, 3, 6}, {0, 1, 2, 3, 4, 5, 6}};

/// `make` makes a backend anew: its workspace is that of one pipeline.
void expect_same_bits(const std::function<std::unique_ptr<Backend>()>& make, DType compute,
                      double dropout) {
  SCOPED_TRACE(fmt::format("{}, {}, dropout {}", make()->describe(), name_of(compute), dropout));
  const Result whole = run(*make(), {0, 6}, LocalPipeline::Backward::joint, 0, compute, dropout);
  for (const double loss : whole.losses) EXPECT_GT(loss, 0);
  for (const auto& gradient : whole.gradients)
    for (const float value : gradient) ASSERT_TRUE(std::isfinite(value));
  for (const auto& cuts : kCuts)
    for (const auto backward : {LocalPipeline::Backward::joint, LocalPipeline::Backward::separate})
      EXPECT_TRUE(run(*make(), cuts, backward, 0, compute, dropout) == whole)
          << cuts.size() - 1 << " stages, separate: " << static_cast<int>(backward);
}

TEST(ModelStageTest, CutsAndSeparationNeverChangeABit) {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const double dropout : {0.0, 0.2}) {
      expect_same_bits(make_oracle_backend, compute, dropout);
      for (const char* isa : {"", "baseline"})  // bf16 by the processor where it can, and emulated
        expect_same_bits([&] { return make_cpu_backend(1, isa); }, compute, dropout);
    }
}

/// The whole model with dropout stays as near the oracle as without: the same elements are dropped.
TEST(ModelStageTest, DropoutMatchesTheOracle) {
  for (const double dropout : {0.0, 0.2}) {
    const auto with = [&](Backend& backend) {
      return run(backend, {0, 6}, LocalPipeline::Backward::joint, 0, DType::f32, dropout);
    };
    const Result expected = with(*make_oracle_backend());
    for (const char* isa : {"", "baseline"}) {
      const Result got = with(*make_cpu_backend(1, isa));
      EXPECT_LE(relative_error(got.losses, expected.losses), 1e-5) << dropout;
      for (std::size_t b = 0; b < expected.gradients.size(); ++b)
        EXPECT_LE(relative_error(got.gradients[b], expected.gradients[b]), 1e-4) << "bucket " << b;
    }
  }
}

/// A loss of the model, in training or not, with the first units frozen.
double loss_of(double dropout, bool training, int frozen = 0, std::uint64_t seed = 3,
               std::int64_t step = 1, int microbatch = 0) {
  const auto model = make_model("gpt", in(DType::f32, dropout));
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model, {0, 3, 6}, frozen);
  pipeline.initialize(5);
  for (const char* name : {"001.attention/proj.weight", "002.mlp/down.weight"})  // as if trained:
    for (float& w : std::span(pipeline.weight(name).f32(), pipeline.weight(name).count))
      w *= 30;  // what they put out counts
  pipeline.refresh();
  pipeline.set_random(seed, step);
  Data data(9);
  const Buffer tokens = data.integers(22, 0, 36), targets = data.integers(22, 0, 36);
  GradientStore store(pipeline.buckets());
  std::vector<float> logits;
  return training ? pipeline.train(tokens.view(), targets.view(), 0.01F, microbatch, store)
                  : pipeline.evaluate(tokens.view(), targets.view(), logits);
}

TEST(ModelStageTest, DropoutIsOfTrainingAlone) {
  const double whole = loss_of(0, true);
  EXPECT_EQ(loss_of(0.2, false), whole);
  EXPECT_EQ(loss_of(0.2, true), loss_of(0.2, true));
  EXPECT_NE(loss_of(0.2, true), whole);
  EXPECT_NE(loss_of(0.2, true), loss_of(0.3, true));
}

TEST(ModelStageTest, DropoutFollowsFromSeedStepAndMicrobatch) {
  const double one = loss_of(0.2, true);
  EXPECT_NE(loss_of(0.2, true, 0, 4), one);
  EXPECT_NE(loss_of(0.2, true, 0, 3, 2), one);
  EXPECT_NE(loss_of(0.2, true, 0, 3, 1, 1), one);
}

/// Units 0 to 4 of 6 drop something: embedding, two attention and two MLP half-blocks.
TEST(ModelStageTest, FrozenUnitsDropNothing) {
  std::vector<double> losses;
  for (int frozen = 0; frozen < 6; ++frozen) {
    losses.push_back(loss_of(0.2, true, frozen));
    EXPECT_EQ(std::count(losses.begin(), losses.end(), losses.back()), 1) << frozen;
  }
  EXPECT_EQ(losses.back(), loss_of(0, true));
}

/// The whole model in bf16 stays near the oracle that rounds where it does.
TEST(ModelStageTest, Bf16MatchesTheOracle) {
  const Result expected =
      run(*make_oracle_backend(), {0, 6}, LocalPipeline::Backward::joint, 0, DType::bf16);
  for (const char* isa : {"", "baseline"}) {
    const Result got =
        run(*make_cpu_backend(1, isa), {0, 3, 6}, LocalPipeline::Backward::joint, 0, DType::bf16);
    EXPECT_LE(relative_error(got.losses, expected.losses), 2e-3);
    for (std::size_t b = 0; b < expected.gradients.size(); ++b)
      EXPECT_LE(relative_error(got.gradients[b], expected.gradients[b]), 3e-2) << "bucket " << b;
  }
}

/// Units that train get the gradients that they would get anyway, frozen tensors none.
TEST(ModelStageTest, FrozenUnitsChangeNoOtherGradient) {
  for (const bool cpu : {false, true}) {
    const auto backend = cpu ? make_cpu_backend(1) : make_oracle_backend();
    const Result whole = run(*backend, {0, 6}, LocalPipeline::Backward::joint);
    for (int frozen = 1; frozen < 6; ++frozen) {
      const auto buckets = make_buckets(make_model("gpt", kConfig)->spec(), frozen);
      Result expected = whole;
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        EXPECT_EQ(buckets[b].frozen, buckets[b].uses.front() < frozen);
        if (buckets[b].frozen) expected.gradients[b].clear();
      }
      for (const auto& cuts : kCuts)
        for (const auto backward :
             {LocalPipeline::Backward::joint, LocalPipeline::Backward::separate})
          EXPECT_TRUE(run(*backend, cuts, backward, frozen) == expected)
              << frozen << " frozen, " << cuts.size() - 1
              << " stages, separate: " << static_cast<int>(backward);
    }
  }
}

TEST(ModelStageTest, WhatIsComputedAgainHasTheSameBits) {
  const auto backend = make_cpu_backend(1);
  for (const int frozen : {0, 2})
    for (const double dropout : {0.0, 0.25}) {
      const Result expected =
          run(*backend, {0, 6}, LocalPipeline::Backward::joint, frozen, DType::f32, dropout);
      for (const std::vector<std::string>& words :
           {std::vector<std::string>{"full"}, {"attention"}, {"mlp"}, {"1", "4"}, {"2-3"}})
        for (const auto& cuts : {std::vector<int>{0, 6}, {0, 3, 6}, {0, 2, 4, 6}})
          for (const auto backward :
               {LocalPipeline::Backward::joint, LocalPipeline::Backward::separate})
            EXPECT_TRUE(run(*backend, cuts, backward, frozen, DType::f32, dropout, words) ==
                        expected)
                << words[0] << ", " << frozen << " frozen, " << cuts.size() - 1
                << " stages, dropout " << dropout;
    }
}

TEST(ModelStageTest, AUnitThatCannotComputeAgainIsRefused) {
  for (const std::string word :
       {"0", "5", "6", "0-1", "4-2", "head", "", "-1", "1-", "99999999999"}) {
    ModelConfig config = kConfig;
    config.recompute = {word};
    try {
      make_model("gpt", config);
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.where(), "parallel.recompute");
      EXPECT_NE(error.fix().find("attention, mlp"), std::string::npos) << error.fix();
    }
  }
}

TEST(ModelStageTest, FrozenUnitsSaveNothingAndShareOneScratch) {
  const auto model = make_model("gpt", kConfig);
  const auto backend = make_oracle_backend();
  const auto stage = [&](int first, int last, int frozen) {
    const auto buckets = make_buckets(model->spec(), frozen);
    return ModelStage(*backend, *model, buckets, first, last, frozen).memory();
  };
  EXPECT_EQ(stage(0, 4, 4).saved_bytes, 0U);
  EXPECT_EQ(stage(0, 4, 4).grad_bytes, 0U);
  EXPECT_EQ(stage(0, 4, 4).workspace_bytes, 0U);
  EXPECT_EQ(stage(1, 5, 5).forward_bytes, stage(1, 4, 4).forward_bytes);
  EXPECT_EQ(stage(1, 5, 1).forward_bytes, 0U);
  const std::size_t edge = align_up(model->spec().boundary_bytes);
  EXPECT_EQ(stage(1, 6, 4).saved_bytes, edge + stage(4, 6, 4).saved_bytes);
  EXPECT_EQ(stage(1, 6, 4).grad_bytes, stage(4, 6, 4).grad_bytes);
}

/// Microbatch 0 overwrites and the others add, in every tensor of every unit.
TEST(ModelStageTest, GradientsOfMicrobatchesAddUp) {
  const auto model = make_model("gpt", kConfig);
  const auto backend = make_oracle_backend();
  LocalPipeline pipeline(*backend, *model, {0, 3, 6});
  pipeline.initialize(5);
  GradientStore together(pipeline.buckets());
  std::vector<std::vector<double>> sums(pipeline.buckets().size());
  Data data(8);
  for (int m = 0; m < kMicrobatches; ++m) {
    const Buffer tokens = data.integers(22, 0, 36), targets = data.integers(22, 0, 36);
    GradientStore alone(pipeline.buckets());
    pipeline.train(tokens.view(), targets.view(), 0.01F, m, together);
    pipeline.train(tokens.view(), targets.view(), 0.01F, 0, alone);
    for (std::size_t b = 0; b < sums.size(); ++b) {
      const std::vector<float> gradient = alone.total(static_cast<int>(b));
      sums[b].resize(gradient.size());
      for (std::size_t i = 0; i < gradient.size(); ++i)
        sums[b][i] += static_cast<double>(gradient[i]);
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

void expect_memory_of_spec(double dropout, const std::vector<std::string>& recompute = {}) {
  ModelConfig config = in(DType::f32, dropout);
  config.recompute = recompute;
  const auto model = make_model("gpt", config);
  const std::vector<UnitCost> costs = training_costs(model->spec(), 0);
  const auto buckets = make_buckets(model->spec());
  const auto backend = make_oracle_backend();
  const std::size_t boundary = align_up(model->spec().boundary_bytes);
  for (int first = 0; first < 6; ++first)
    for (int last = first + 1; last <= 6; ++last) {
      const ModelStage stage(*backend, *model, buckets, first, last);
      std::size_t saved = 0, grads = 0, most = 0;
      for (int u = first; u < last; ++u) {
        const UnitCost& cost = costs[static_cast<std::size_t>(u)];
        saved += cost.saved_bytes;
        grads += cost.grad_bytes;
        most = std::max(most, cost.grad_bytes);
      }
      const auto edges = static_cast<std::size_t>(last - first - 1);
      const StageMemory memory = stage.memory();
      EXPECT_EQ(memory.saved_bytes, saved + edges * boundary);
      EXPECT_EQ(memory.grad_bytes, grads + edges * boundary);
      EXPECT_EQ(memory.boundary_bytes, model->spec().boundary_bytes);
      EXPECT_EQ(memory.workspace_bytes, most + std::min<std::size_t>(edges, 2) * boundary);
      EXPECT_EQ(stage.first_unit(), first);
      EXPECT_EQ(stage.last_unit(), last);
    }
}

TEST(ModelStageTest, MemoryFollowsFromTheSpec) {
  expect_memory_of_spec(0);
  expect_memory_of_spec(0.2);
  expect_memory_of_spec(0.2, {"full"});
  expect_memory_of_spec(0, {"attention"});
}

TEST(ModelStageTest, HoldsTheBucketsOfItsUnits) {
  const auto model = make_model("gpt", kConfig);
  const auto buckets = make_buckets(model->spec());
  const auto backend = make_oracle_backend();
  for (int first = 0; first < 6; ++first)
    for (int last = first + 1; last <= 6; ++last) {
      const ModelStage stage(*backend, *model, buckets, first, last);
      for (int b = 0; b < std::ssize(buckets); ++b) {
        const auto& uses = buckets[static_cast<std::size_t>(b)].uses;
        const bool used =
            std::any_of(uses.begin(), uses.end(), [&](int u) { return first <= u && u < last; });
        EXPECT_EQ(std::count(stage.buckets().begin(), stage.buckets().end(), b), used ? 1 : 0);
      }
    }
}

TEST(ModelStageTest, WeightsCountOnlyOnceRefreshed) {
  const auto model = make_model("gpt", kConfig);
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model, {0, 6});
  pipeline.initialize(1);
  Data data(4);
  const Buffer tokens = data.integers(22, 0, 36), targets = data.integers(22, 0, 36);
  std::vector<float> before, after;
  const double loss = pipeline.evaluate(tokens.view(), targets.view(), before);
  EXPECT_EQ(before.size(), 22U * 37U);
  EXPECT_NEAR(loss / 22, std::log(37.0), 0.2) << "a fresh model knows nothing";
  const View up = pipeline.weight("002.mlp/up.weight");
  for (std::size_t i = 0; i < up.count; ++i) up.f32()[i] *= 3;
  pipeline.refresh();
  pipeline.evaluate(tokens.view(), targets.view(), after);
  EXPECT_NE(before, after);
}

/// Counts passes that might be repeated; no kernel is outside of one.
class PassCounter final : public BackendAround {
 public:
  using BackendAround::BackendAround;
  bool records_passes() const override { return true; }
  void repeat(const RepeatedPass& pass, const std::function<void()>& issue) override {
    ++passes[fmt::format("{} of {}", pass.pass, pass.unit)];
    keys.insert({pass.key.begin(), pass.key.end()});
    inside_ = true;
    issue();
    inside_ = false;
  }
  void forget_passes() override { ++forgotten; }

  std::map<std::string, int> passes;
  std::set<std::vector<std::uint64_t>> keys;
  int forgotten = 0;

 private:
  void before(Op&) override { EXPECT_TRUE(inside_); }

  bool inside_ = false;
};

TEST(ModelStageTest, EveryKernelIsInAPassThatCanBeRepeated) {
  for (const auto backward : {LocalPipeline::Backward::joint, LocalPipeline::Backward::separate}) {
    PassCounter counter(make_cpu_backend(1));
    run(counter, {0, 3, 6}, backward);
    EXPECT_EQ(counter.forgotten, 2) << "once a stage, when it gets its memory";
    EXPECT_EQ(counter.passes.size(), 6U * kPasses);
    for (const auto& [pass, times] : counter.passes)
      EXPECT_EQ(times, pass.starts_with("packing") ? 1 : kMicrobatches) << pass;
    // The tables and targets of each microbatch; gradients that overwrite, and that add.
    EXPECT_LT(counter.keys.size(), counter.passes.size() * kMicrobatches);
    EXPECT_GE(counter.keys.size(), counter.passes.size() + 6);
  }
}

/// Keys cost time: nobody writes them for a backend that drops them.
TEST(ModelStageTest, ABackendThatRecordsNothingIsNotAskedTo) {
  class Recordless final : public BackendAround {
   public:
    using BackendAround::BackendAround;
    void repeat(const RepeatedPass& pass, const std::function<void()>&) override {
      ADD_FAILURE() << pass.pass << " of " << pass.unit;
    }
  };
  Recordless backend(make_cpu_backend(1));
  run(backend, {0, 3, 6}, LocalPipeline::Backward::joint);
}

TEST(ModelStageTest, OnlyTheLastStageHasALoss) {
  const auto model = make_model("gpt", kConfig);
  const auto backend = make_oracle_backend();
  const LocalPipeline pipeline(*backend, *model, {0, 3, 6});
  EXPECT_THROW(pipeline.stages().front()->row_loss({}), Error);
  EXPECT_THROW(pipeline.stages().front()->logits({}), Error);
}

/// The gradient of the whole model in one random direction, against a difference of its loss.
void expect_uphill(double dropout) {
  const auto model = make_model("gpt", in(DType::f32, dropout));
  const auto backend = make_cpu_backend(1);
  LocalPipeline pipeline(*backend, *model, {0, 3, 6});
  pipeline.initialize(2);
  Data data(6);
  const Buffer tokens = data.integers(22, 0, 36), targets = data.integers(22, 0, 36);
  GradientStore store(pipeline.buckets());
  pipeline.train(tokens.view(), targets.view(), 1, 0, store);
  std::vector<std::vector<float>> start;
  double slope = 0;
  for (int b = 0; b < std::ssize(pipeline.buckets()); ++b) {
    start.push_back(pipeline.weights()[static_cast<std::size_t>(b)].values());
    for (const float g : store.total(b)) slope += static_cast<double>(g) * static_cast<double>(g);
  }
  const double step = 0.002 / std::sqrt(slope);  // along the gradient: d loss / d step = slope
  double difference = 0;
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t b = 0; b < start.size(); ++b) {
      const std::vector<float> gradient = store.total(static_cast<int>(b));
      for (std::size_t i = 0; i < gradient.size(); ++i)
        pipeline.weights()[b].data()[i] =
            start[b][i] + static_cast<float>(sign * step) * gradient[i];
    }
    pipeline.refresh();
    GradientStore unused(pipeline.buckets());
    difference += sign * pipeline.train(tokens.view(), targets.view(), 1, 0, unused);
  }
  EXPECT_NEAR(difference / (2 * step) / slope, 1, 5e-4) << "dropout " << dropout;
}

TEST(ModelStageTest, GradientPointsUphill) {
  expect_uphill(0);
  expect_uphill(0.2);
}

}  // namespace
}  // namespace concertina
