// The model against PyTorch's figures (tests/golden/make_golden.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "models/lr_schedule.h"
#include "models/optimizer.h"
#include "tests/models/golden_file.h"
#include "tests/models/local_pipeline.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

struct Candidate {
  const char* name;
  std::function<std::unique_ptr<Backend>()> make;
};
void PrintTo(const Candidate& candidate, std::ostream* out) {
  *out << candidate.name;
}

class GoldenTest : public testing::TestWithParam<Candidate> {};

TEST_P(GoldenTest, LogitsLossAndEveryGradient) {
  const GoldenFile golden("gradients");
  const auto backend = GetParam().make();
  const auto model = make_model("gpt", golden.config());
  const int units = static_cast<int>(model->spec().units.size());
  LocalPipeline pipeline(*backend, *model, {0, units});
  golden.load_weights(pipeline);
  const auto ids = golden.tensor<std::int32_t>("tokens");
  const auto wanted = golden.tensor<std::int32_t>("targets");
  const Buffer tokens = integers(ids), targets = integers(wanted);
  const auto valid = std::count_if(wanted.begin(), wanted.end(), [](int t) { return t >= 0; });

  std::vector<float> logits;
  const double sum = pipeline.evaluate(tokens.view(), targets.view(), logits);
  EXPECT_LE(relative_error(logits, golden.tensor("logits")), 1e-5);
  const auto loss = static_cast<double>(golden.tensor("loss")[0]);
  EXPECT_NEAR(sum / static_cast<double>(valid), loss, 1e-5 * loss);

  GradientStore store(pipeline.buckets());
  const float scale = 1 / static_cast<float>(valid);
  EXPECT_EQ(sum, pipeline.train(tokens.view(), targets.view(), scale, 0, store));
  store.expect_complete(1);
  for (int b = 0; b < std::ssize(pipeline.buckets()); ++b) {
    const std::vector<float> total = store.total(b);
    for (const BucketTensor& tensor : pipeline.buckets()[static_cast<std::size_t>(b)].tensors) {
      const std::span<const float> gradient(total.data() + tensor.offset, tensor.count);
      EXPECT_LE(relative_error(gradient, golden.tensor("grad " + tensor.name)), 1e-5)
          << tensor.name;
    }
  }
}

/// A training loop in the open: PyTorch's AdamW, clipping and schedule, step by step.
class Replay {
 public:
  Replay(const GoldenFile& golden, Backend& backend)
      : golden_(golden),
        backend_(backend),
        model_(make_model("gpt", golden.config())),
        pipeline_(backend, *model_, {0, static_cast<int>(model_->spec().units.size())}),
        optimizer_(make_optimizer("adamw", {.beta1 = golden.number("beta1"),
                                            .beta2 = golden.number("beta2"),
                                            .eps = golden.number("eps"),
                                            .weight_decay = golden.number("weight_decay")})),
        schedule_(make_lr_schedule("cosine", {.peak = golden.number("lr"),
                                              .steps = golden.integer("steps"),
                                              .warmup = golden.integer("warmup"),
                                              .min = golden.number("min")})) {
    golden.load_weights(pipeline_);
    for (const Bucket& bucket : pipeline_.buckets())
      for (auto* state : {&m_, &v_}) state->emplace_back(std::vector<float>(bucket.elements));
  }

  struct Figures {
    double loss, norm;
  };
  Figures step(std::int64_t step) {
    const auto [tokens, targets] = batch(step);
    GradientStore store(pipeline_.buckets());
    const auto rows = static_cast<double>(tokens.size());
    const double sum =
        pipeline_.train(tokens.view(), targets.view(), static_cast<float>(1 / rows), 0, store);
    double squares = 0;
    for (int b = 0; b < std::ssize(pipeline_.buckets()); ++b)
      for (const float g : store.total(b))
        squares += static_cast<double>(g) * static_cast<double>(g);
    const UpdateStep update{step, schedule_.rate(step),
                            clip_scale(std::sqrt(squares), golden_.number("clip"))};
    for (std::size_t b = 0; b < pipeline_.buckets().size(); ++b) {
      const Buffer total(store.total(static_cast<int>(b)));
      for (const BucketTensor& tensor : pipeline_.buckets()[b].tensors) {
        const auto cut = [&](const Buffer& all) {
          return all.view().slice(tensor.offset, tensor.count);
        };
        optimizer_->update(backend_, update,
                           {.w = cut(pipeline_.weights()[b]),
                            .states = std::array{cut(m_[b]), cut(v_[b])},
                            .g = cut(total),
                            .decay = tensor.decay});
      }
    }
    pipeline_.refresh();
    return {sum / rows, std::sqrt(squares)};
  }

 private:
  std::pair<Buffer, Buffer> batch(std::int64_t step) const {
    const auto text = golden_.tensor<std::int32_t>("text");
    const auto starts = golden_.tensor<std::int32_t>("starts");
    const std::int64_t samples = golden_.integer("samples"), context = golden_.integer("context");
    std::vector<std::int32_t> tokens, targets;
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto at = text.begin() + starts[static_cast<std::size_t>((step - 1) * samples + i)];
      tokens.insert(tokens.end(), at, at + context);
      targets.insert(targets.end(), at + 1, at + context + 1);
    }
    return {integers(tokens), integers(targets)};
  }

  const GoldenFile& golden_;
  Backend& backend_;
  std::unique_ptr<Model> model_;
  LocalPipeline pipeline_;
  std::unique_ptr<Optimizer> optimizer_;
  LrSchedule schedule_;
  std::vector<Buffer> m_, v_;
};

TEST_P(GoldenTest, LossCurve) {
  const GoldenFile golden("curve");
  const auto backend = GetParam().make();
  const auto losses = golden.tensor("losses"), norms = golden.tensor("norms");
  // The oracle is slow and a start of the curve shows all that it can show.
  const std::int64_t steps = GetParam().name == std::string("oracle") ? 3 : golden.integer("steps");
  Replay replay(golden, *backend);
  double most = 0;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto at = static_cast<std::size_t>(step - 1);
    const auto [loss, norm] = replay.step(step);
    const auto expected = static_cast<double>(losses[at]);
    most = std::max(most, std::abs(loss - expected));
    ASSERT_NEAR(loss, expected, 1e-3) << "step " << step;
    ASSERT_NEAR(norm, static_cast<double>(norms[at]), 5e-3 * norm) << "step " << step;
  }
  RecordProperty("largest_difference", std::to_string(most));
}

INSTANTIATE_TEST_SUITE_P(Backends, GoldenTest,
                         testing::Values(Candidate{"oracle", make_oracle_backend},
                                         Candidate{"cpu", [] { return make_cpu_backend(1); }}),
                         [](const auto& candidate) { return std::string(candidate.param.name); });

}  // namespace
}  // namespace concertina
