// Everything that a unit's pass is given is in its key, but for the step and the sample.

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/backend.h"
#include "models/model.h"
#include "models/model_stage.h"

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
           [](UnitIo& io) { io.loss_scale = 0.5F; }, [](UnitIo& io) { io.training = false; },
           [](UnitIo& io) { io.random.seed = 7; }, [](UnitIo& io) { io.random.unit = 7; }}) {
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

}  // namespace
}  // namespace concertina
