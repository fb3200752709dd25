// Each family and task against Hugging Face's transformers (tests/golden/make_families.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/models/golden_file.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

struct FamilyCase {
  const char* file;
  const char* backend;
  std::function<std::unique_ptr<Backend>()> make;
};
void PrintTo(const FamilyCase& one, std::ostream* out) {
  *out << one.file << " on " << one.backend;
}

std::vector<FamilyCase> family_cases() {
  std::vector<FamilyCase> cases;
  for (const char* file :
       {"llama", "llama_tied", "bert_masked_lm", "bert_classification", "bert_question_answering",
        "vit", "llama_classification", "gpt_classification", "qwen3", "neox", "phi", "distilbert",
        "bert_regression", "bert_multi_label", "bert_token_classification", "gpt_multi_label",
        "llama_token_classification"}) {
    cases.push_back({file, "oracle", make_oracle_backend});
    cases.push_back({file, "cpu", [] { return make_cpu_backend(1); }});
  }
  return cases;
}

class FamilyGolden : public testing::TestWithParam<FamilyCase> {};

double largest(std::span<const float> values) {
  double most = 0;
  for (const float value : values) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

TEST_P(FamilyGolden, LogitsLossAndEveryGradient) {
  const GoldenFile golden(std::string("family_") + GetParam().file);
  const auto backend = GetParam().make();
  const auto model = golden.model();
  const int units = static_cast<int>(model->spec().units.size());
  LocalPipeline pipeline(*backend, *model, {0, 2, units});
  golden.load_weights(pipeline);
  const std::vector<Buffer> buffers = golden.fields(model->spec());
  std::vector<View> fields;
  for (const Buffer& buffer : buffers) fields.push_back(buffer.view());

  std::vector<float> logits;
  const double sum = pipeline.evaluate(fields, logits);
  EXPECT_LE(relative_error(logits, golden.tensor("logits")), 1e-5);
  const auto loss = static_cast<double>(golden.tensor("loss")[0]);
  const double valid = std::round(sum / loss);
  EXPECT_NEAR(sum / valid, loss, 1e-5 * loss);

  GradientStore store(pipeline.buckets());
  EXPECT_EQ(sum, pipeline.train(fields, static_cast<float>(1 / valid), 0, store));
  store.expect_complete(1);
  for (int b = 0; b < std::ssize(pipeline.buckets()); ++b) {
    const std::vector<float> total = store.total(b);
    for (const BucketTensor& tensor : pipeline.buckets()[static_cast<std::size_t>(b)].tensors) {
      const std::span<const float> gradient(total.data() + tensor.offset, tensor.count);
      const std::vector<float> expected = golden.tensor("grad " + tensor.name);
      // What all positions of a softmax share has no gradient but rounding.
      if (largest(expected) < 1e-9)
        EXPECT_LT(largest(gradient), 1e-6) << tensor.name;
      else
        EXPECT_LE(relative_error(gradient, expected), 1e-4) << tensor.name;
    }
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
  LocalPipeline pipeline(*backend, *model, {0, 2, static_cast<int>(model->spec().units.size())});
  golden.load_weights(pipeline);
  Trained trained;
  trained.loss = pipeline.evaluate(fields, trained.logits);
  GradientStore store(pipeline.buckets());
  EXPECT_EQ(trained.loss, pipeline.train(fields, 0.1F, 0, store));
  for (int b = 0; b < std::ssize(pipeline.buckets()); ++b)
    trained.gradients.push_back(store.total(b));
  return trained;
}

/// The third and the sixth of the targets of each sample, and so on, are kept.
TEST(FamilyTest, ToComputeRowsWithTargetsAloneChangesNoGradient) {
  const GoldenFile golden("family_bert_masked_lm");
  const auto t = static_cast<std::size_t>(golden.config().context);
  const auto v = golden.config().vocab;
  const std::vector<Buffer> buffers = golden.fields(golden.model()->spec());
  std::vector<View> fields;
  for (const Buffer& buffer : buffers) fields.push_back(buffer.view());
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

INSTANTIATE_TEST_SUITE_P(All, FamilyGolden, testing::ValuesIn(family_cases()), [](const auto& one) {
  return fmt::format("{}_{}", one.param.file, one.param.backend);
});

}  // namespace
}  // namespace concertina
