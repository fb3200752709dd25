// Tests passes that a backend may repeat: every kernel belongs to one, and the key contains all
// inputs of a unit's pass except the step and the sample.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "core/backend_around.h"
#include "models/model.h"
#include "models/model_stage.h"
#include "tests/models/local_pipeline.h"

namespace concertina {
namespace {

using Words = std::vector<std::uint64_t>;

class PassKeyTest : public testing::Test {
 protected:
  Words key(const Unit& unit, Pass pass, const UnitIo& io, std::vector<UnitGradient> gradients) {
    Words words{1, 2, 3};  // of another pass
    write_pass_key(unit, pass, io, gradients, words);
    EXPECT_LE(words.size(), pass_key_words(gradients.size()));
    return words;
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend(1);
  std::unique_ptr<Model> model_ = make_model(
      "gpt", {.layers = 1, .width = 8, .heads = 1, .context = 4, .vocab = 5, .samples = 1});
  std::unique_ptr<Unit> unit_ = model_->make_unit(0, *backend_),
                        other_ = model_->make_unit(1, *backend_);
  float memory_[2] = {};
};

TEST_F(PassKeyTest, HasEveryArgument) {
  const View view{memory_, 2, DType::f32}, moved{memory_ + 1, 2, DType::f32},
      shorter{memory_, 1, DType::f32}, narrow{memory_, 2, DType::bf16};
  std::set<Words> keys;
  int given = 0;
  const auto add = [&](const Words& words) { keys.insert(words), ++given; };
  for (const Unit* unit : {unit_.get(), other_.get()})
    for (const Pass pass : {Pass::forward, Pass::input, Pass::weight, Pass::pack})
      add(key(*unit, pass, {}, {}));
  for (View UnitIo::*member :
       {&UnitIo::input, &UnitIo::output, &UnitIo::input_grad, &UnitIo::output_grad})
    for (const View& value : {view, moved, shorter, narrow}) {
      UnitIo io;
      io.*member = value;
      add(key(*unit_, Pass::forward, io, {}));
    }
  for (std::size_t f = 0; f < kMostReads; ++f)
    for (const View& value : {view, moved, shorter, narrow}) {
      UnitIo io;
      io.fields[f] = value;
      add(key(*unit_, Pass::forward, io, {}));
    }
  for (const std::function<void(UnitIo&)>& change : std::vector<std::function<void(UnitIo&)>>{
           [&](UnitIo& io) { io.saved = memory_; }, [&](UnitIo& io) { io.grads = memory_; },
           [&](UnitIo& io) { io.cache = memory_; }, [](UnitIo& io) { io.loss_scale = 0.5F; },
           [](UnitIo& io) { io.training = false; }, [](UnitIo& io) { io.random.seed = 7; },
           [](UnitIo& io) { io.random.unit = 7; }}) {
    UnitIo io;
    change(io);
    add(key(*unit_, Pass::forward, io, {}));
  }
  for (const View& value : {view, moved, shorter, narrow})
    for (const bool accumulate : {false, true}) {
      add(key(*unit_, Pass::weight, {}, {{value, accumulate}}));
      add(key(*unit_, Pass::weight, {}, {{}, {value, accumulate}}));
    }
  EXPECT_EQ(std::ssize(keys), given);
}

TEST_F(PassKeyTest, HasNoStepAndNoSample) {
  UnitIo io;
  io.random.step = 5, io.random.sample = 6;
  EXPECT_EQ(key(*unit_, Pass::forward, io, {}), key(*unit_, Pass::forward, {}, {}));
}

constexpr int kPassed = 3;  // microbatches

/// Trains on two stages of three units each.
void train(Backend& backend, LocalPipeline::Backward backward) {
  const auto model = make_model(
      "gpt", {.layers = 2, .width = 20, .heads = 4, .context = 11, .vocab = 37, .samples = 2});
  LocalPipeline pipeline(backend, *model, {0, 3});
  pipeline.initialize(5);
  GradientStore store(pipeline.buckets());
  Data data(9);
  for (int m = 0; m < kPassed; ++m) {
    const Buffer tokens = data.integers(22, 0, 36), targets = data.integers(22, -1, 36);
    pipeline.train(tokens.view(), targets.view(), 0.01F, m, store, backward);
  }
}

/// Counts passes that might be repeated; no kernel runs outside a pass.
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

TEST(PassesTest, EveryKernelIsInAPassThatCanBeRepeated) {
  for (const auto backward : {LocalPipeline::Backward::joint, LocalPipeline::Backward::separate}) {
    PassCounter counter(make_cpu_backend(1));
    train(counter, backward);
    EXPECT_EQ(counter.forgotten, 2) << "once per stage, when it gets its memory";
    EXPECT_EQ(counter.passes.size(), 6U * kPasses);
    for (const auto& [pass, times] : counter.passes)
      EXPECT_EQ(times, pass.starts_with("packing") ? 1 : kPassed) << pass;
    // Microbatches have their own tables and targets; gradients overwrite or accumulate.
    EXPECT_LT(counter.keys.size(), counter.passes.size() * kPassed);
    EXPECT_GE(counter.keys.size(), counter.passes.size() + 6);
  }
}

/// Computing keys takes time, so it is skipped for a backend that ignores them.
TEST(PassesTest, ABackendThatRecordsNothingIsNotAskedTo) {
  class Recordless final : public BackendAround {
   public:
    using BackendAround::BackendAround;
    void repeat(const RepeatedPass& pass, const std::function<void()>&) override {
      ADD_FAILURE() << pass.pass << " of " << pass.unit;
    }
  };
  Recordless backend(make_cpu_backend(1));
  train(backend, LocalPipeline::Backward::joint);
}

}  // namespace
}  // namespace concertina
