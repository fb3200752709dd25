// Compares models with PyTorch's results (tests/golden/make_golden.py), and each family and task
// with Hugging Face's transformers (make_families.py).
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

double largest(std::span<const float> values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

/// The common part of a softmax's inputs has a gradient of 0 but for rounding: 1e-6 counts as 1e-4.
double gradient_error(std::span<const float> gradient, const std::vector<float>& expected) {
  return largest(expected) < 1e-9 ? 100 * largest(gradient) : relative_error(gradient, expected);
}

void expect_logits_loss_and_gradients(const GoldenFile& golden, Backend& backend,
                                      double tolerance) {
  const auto model = golden.model();
  LocalPipeline pipeline(backend, *model, {0, 2});
  golden.load_weights(pipeline);
  const std::vector<Buffer> buffers = golden.fields(model->spec());
  const std::vector<View> fields = views_of(buffers);
  std::vector<float> logits;
  const double sum = pipeline.evaluate(fields, logits);
  EXPECT_LE(relative_error(logits, golden.tensor("logits")), 1e-5);
  const auto loss = static_cast<double>(golden.tensor("loss")[0]);
  const double valid = std::round(sum / loss);
  EXPECT_NEAR(sum / valid, loss, 1e-5 * loss);

  GradientStore store(pipeline.buckets());
  EXPECT_EQ(sum, pipeline.train(fields, static_cast<float>(1 / valid), 0, store));
  store.expect_complete(1);
  const std::vector<std::vector<float>> totals = store.totals();
  for (std::size_t b = 0; b < totals.size(); ++b)
    for (const BucketTensor& tensor : pipeline.buckets()[b].tensors)
      EXPECT_LE(gradient_error(std::span(totals[b]).subspan(tensor.offset, tensor.count),
                               golden.tensor("grad " + tensor.name)),
                tolerance)
          << tensor.name;
}

TEST(Golden, LogitsLossAndEveryGradient) {
  for (const std::string file :
       {"gradients", "family_llama", "family_llama_tied", "family_bert_masked_lm",
        "family_bert_classification", "family_bert_question_answering", "family_vit",
        "family_llama_classification", "family_gpt_classification", "family_qwen3", "family_neox",
        "family_phi", "family_distilbert", "family_bert_regression", "family_bert_multi_label",
        "family_bert_token_classification", "family_gpt_multi_label",
        "family_llama_token_classification"})
    for (const auto& backend : {make_oracle_backend(), make_cpu_backend(1)}) {
      SCOPED_TRACE(file + " on " + backend->describe());
      expect_logits_loss_and_gradients(GoldenFile(file), *backend,
                                       file == "gradients" ? 1e-5 : 1e-4);
    }
}

/// The model of a golden file, with its matrices multiplied by a number.
class ScaledModel {
 public:
  ScaledModel(const GoldenFile& golden, Backend& backend, float scale)
      : model_(make_model("gpt", golden.config())), pipeline_(backend, *model_) {
    golden.load_weights(pipeline_);
    for (const Bucket& bucket : pipeline_.buckets())
      for (const BucketTensor& tensor : bucket.tensors)
        for (float& w : std::span(pipeline_.weight(tensor.name).f32(), tensor.count))
          if (tensor.decay) w *= scale;  // biases and norms do not decay
    pipeline_.refresh();
  }
  Buffer logits(View tokens, View targets) {
    std::vector<float> logits;
    pipeline_.evaluate(tokens, targets, logits);
    return Buffer(logits);
  }

 private:
  std::unique_ptr<Model> model_;
  LocalPipeline pipeline_;
};

/// A training loop written out step by step: PyTorch's AdamW, clipping and schedule.
class Replay {
 public:
  /// Trains with the logits of `teacher` unless it is null.
  Replay(const GoldenFile& golden, Backend& backend, DistillationSpec distillation = {},
         ScaledModel* teacher = nullptr)
      : golden_(golden),
        backend_(backend),
        teacher_(teacher),
        model_([&] {
          ModelConfig config = golden.config();
          config.distillation = distillation;
          return make_model("gpt", config);
        }()),
        pipeline_(backend, *model_),
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

  struct Metrics {
    double loss, norm;
  };
  Metrics step(std::int64_t step) {
    const auto [tokens, targets] = batch(step);
    GradientStore store(pipeline_.buckets());
    const auto rows = static_cast<double>(tokens.size());
    std::vector<View> fields{tokens.view(), targets.view()};
    Buffer logits;
    if (teacher_ != nullptr) {
      logits = teacher_->logits(tokens.view(), targets.view());
      fields.push_back(logits.view());
    }
    const double sum = pipeline_.train(fields, static_cast<float>(1 / rows), 0, store);
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
  ScaledModel* teacher_;
  std::unique_ptr<Model> model_;
  LocalPipeline pipeline_;
  std::unique_ptr<Optimizer> optimizer_;
  LrSchedule schedule_;
  std::vector<Buffer> m_, v_;
};

/// The oracle is slow, and the beginning of the curve shows enough.
TEST(Golden, LossCurve) {
  const GoldenFile golden("curve");
  const auto losses = golden.tensor("losses"), norms = golden.tensor("norms");
  const std::pair<std::unique_ptr<Backend>, std::int64_t> runs[] = {
      {make_oracle_backend(), 3}, {make_cpu_backend(1), golden.integer("steps")}};
  for (const auto& [backend, steps] : runs) {
    Replay replay(golden, *backend);
    for (std::int64_t step = 1; step <= steps; ++step) {
      const auto at = static_cast<std::size_t>(step - 1);
      const auto [loss, norm] = replay.step(step);
      ASSERT_NEAR(loss, static_cast<double>(losses[at]), 1e-3) << "step " << step;
      ASSERT_NEAR(norm, static_cast<double>(norms[at]), 5e-3 * norm) << "step " << step;
    }
  }
}

TEST(Golden, LossCurveOfDistillation) {
  const GoldenFile golden("curve");
  const nlohmann::json expected = golden_json("distillation");
  const auto backend = make_cpu_backend(1);
  ScaledModel teacher(golden, *backend, expected["scale"]);
  Replay replay(golden, *backend, {expected["share"], expected["temperature"]}, &teacher);
  for (std::size_t at = 0; at < expected["losses"].size(); ++at) {
    const auto [loss, norm] = replay.step(static_cast<std::int64_t>(at) + 1);
    const double right = expected["losses"][at], right_norm = expected["norms"][at];
    EXPECT_NEAR(loss, right, 1e-6 * right) << "step " << at + 1;
    EXPECT_NEAR(norm, right_norm, 1e-4 * right_norm) << "step " << at + 1;
  }
}

struct Trained {
  double loss = 0;
  std::vector<float> logits;
  std::vector<std::vector<float>> gradients;  // of each bucket
};

Trained train_on(const GoldenFile& golden, std::int64_t most, const std::vector<View>& fields) {
  const auto backend = make_cpu_backend(1);
  const auto model = golden.model(most);
  LocalPipeline pipeline(*backend, *model, {0, 2});
  golden.load_weights(pipeline);
  Trained trained;
  trained.loss = pipeline.evaluate(fields, trained.logits);
  GradientStore store(pipeline.buckets());
  EXPECT_EQ(trained.loss, pipeline.train(fields, 0.1F, 0, store));
  trained.gradients = store.totals();
  return trained;
}

/// Keeps every third target of each sample.
TEST(Golden, ToComputeRowsWithTargetsAloneChangesNoGradient) {
  const GoldenFile golden("family_bert_masked_lm");
  const auto t = static_cast<std::size_t>(golden.config().context);
  const auto v = golden.config().vocab;
  const std::vector<Buffer> buffers = golden.fields(golden.model()->spec());
  const std::vector<View> fields = views_of(buffers);
  const View targets = fields.back();
  std::vector<std::size_t> rows;  // with targets
  for (std::size_t row = 0, seen = 0; row < targets.count; ++row) {
    if (row % t == 0) seen = 0;
    if (targets.i32()[row] == kIgnored) continue;
    if (++seen % 3 == 0)
      rows.push_back(row);
    else
      targets.i32()[row] = kIgnored;
  }
  const std::int64_t most = static_cast<std::int64_t>(t) / 3;
  const Trained all = train_on(golden, 0, fields), few = train_on(golden, most, fields);
  EXPECT_NEAR(few.loss, all.loss, 1e-6 * all.loss);
  EXPECT_EQ(few.logits.size() * t, all.logits.size() * static_cast<std::size_t>(most));
  for (std::size_t i = 0, found = 0; i < rows.size(); ++i) {
    found = i > 0 && rows[i] / t == rows[i - 1] / t ? found + 1 : 0;
    const std::size_t row = rows[i] / t * static_cast<std::size_t>(most) + found;
    EXPECT_LE(relative_error(std::span(few.logits).subspan(row * v, v),
                             std::span(all.logits).subspan(rows[i] * v, v)),
              1e-6)
        << "row " << rows[i];
  }
  for (std::size_t b = 0; b < all.gradients.size(); ++b)
    EXPECT_LE(relative_error(few.gradients[b], all.gradients[b]), 1e-5) << "bucket " << b;
}

}  // namespace
}  // namespace concertina
