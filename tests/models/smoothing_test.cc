// Label smoothing in models; it and distillation compared with PyTorch's
// (tests/golden/make_label_smoothing.py).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/golden_file.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

Buffer targets_of(const nlohmann::json& values) {
  return integers(values.get<std::vector<std::int32_t>>());
}

/// Returns the loss and the gradient that `op` computes from the logits of `one`.
template <class Op>
void expect_torch(Backend& backend, const nlohmann::json& one, std::size_t losses, Op op) {
  const Buffer grad(one["logits"].get<std::vector<float>>());
  const Buffer row_loss(losses);
  op.logits = grad.view();
  op.row_loss = row_loss.view();
  op.loss_scale = one["scale"].get<float>();
  if constexpr (requires { op.training; }) op.training = true;
  op.smoothing = one["smoothing"].get<float>();
  backend.run(op);
  backend.synchronize();
  EXPECT_LE(relative_error(row_loss.values(), one["row_loss"].get<std::vector<float>>()), 1e-6);
  EXPECT_LE(relative_error(grad.values(), one["gradient"].get<std::vector<float>>()), 1e-6);
}

TEST(LabelSmoothing, IsThatOfPyTorch) {
  const nlohmann::json golden = golden_json("label_smoothing");
  for (const auto& backend : {make_oracle_backend(), make_cpu_backend(1), make_cpu_backend(3)}) {
    for (const nlohmann::json& one : golden["rows"]) {
      const Buffer targets = targets_of(one["targets"]);
      expect_torch(*backend, one, one["targets"].size(),
                   CrossEntropy{{}, targets.view(), 0, true, {}});
    }
    for (const nlohmann::json& one : golden["spans"]) {
      const Buffer starts = targets_of(one["starts"]), ends = targets_of(one["ends"]);
      expect_torch(*backend, one, one["starts"].size(),
                   SpanCrossEntropy{{}, starts.view(), ends.view(), one["tokens"], 0, true, {}});
    }
    for (const nlohmann::json& one : golden["taught"]) {
      const Buffer targets = targets_of(one["targets"]),
                   teacher(one["teacher"].get<std::vector<float>>());
      expect_torch(*backend, one, one["targets"].size(),
                   Distillation{{}, targets.view(), teacher.view(), 0, {}, 0,
                                one["share"].get<float>(), one["temperature"].get<float>()});
    }
  }
}

/// Returns the losses of the family and task of `name` with this smoothing.
std::pair<double, double> losses_of(const std::string& name, double smoothing,
                                    std::vector<float>& logits, std::vector<float>& gradient) {
  const GoldenFile golden("family_" + name);
  const auto backend = make_cpu_backend(1);
  const auto model = golden.model(0, smoothing);
  LocalPipeline pipeline(*backend, *model, {0, 2});
  golden.load_weights(pipeline);
  const std::vector<Buffer> buffers = golden.fields(model->spec());
  const std::vector<View> fields = views_of(buffers);
  const double held_out = pipeline.evaluate(fields, logits);
  GradientStore store(pipeline.buckets());
  const double trained = pipeline.train(fields, 0.1F, 0, store);
  gradient = store.total(static_cast<int>(std::ssize(pipeline.buckets())) - 1);
  return {held_out, trained};
}

TEST(LabelSmoothing, IsOfTheTrainingLossAlone) {
  for (const std::string name :
       {"gpt_classification", "bert_masked_lm", "bert_question_answering"}) {
    SCOPED_TRACE(name);
    std::vector<float> plain_logits, logits, plain_gradient, gradient;
    const auto [plain, plain_trained] = losses_of(name, 0, plain_logits, plain_gradient);
    EXPECT_EQ(plain, plain_trained);
    const auto [held_out, trained] = losses_of(name, 0.2, logits, gradient);
    EXPECT_EQ(held_out, plain);
    EXPECT_EQ(logits, plain_logits);
    EXPECT_GT(std::abs(trained - held_out), 1e-3);
    EXPECT_NE(gradient, plain_gradient);
  }
}

TEST(LabelSmoothing, SpreadsAModelsTarget) {
  std::vector<float> logits, gradient;
  const auto [held_out, trained] = losses_of("gpt_classification", 0.2, logits, gradient);
  double expected = 0;
  const std::vector<int> labels{2, -1, 0};
  for (std::size_t s = 0; s < labels.size(); ++s) {
    if (labels[s] < 0) continue;
    double sum = 0, mean = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const auto x = static_cast<double>(logits[3 * s + k]);
      sum += std::exp(x);
      mean += x / 3;
    }
    const auto right = static_cast<double>(logits[3 * s + static_cast<std::size_t>(labels[s])]);
    expected += std::log(sum) - 0.8 * right - 0.2 * mean;
  }
  EXPECT_NEAR(trained, expected, 1e-5 * expected);
}

}  // namespace
}  // namespace concertina
