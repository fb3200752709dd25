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
        "vit", "llama_classification", "gpt_classification"}) {
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

/// Fields that the model reads, as the file has them.
std::vector<Buffer> fields_in(const GoldenFile& golden, const ModelSpec& spec) {
  std::vector<Buffer> fields;
  for (const Field& field : fields_of(spec)) {
    if (field.type == DType::i32)
      fields.push_back(integers(golden.tensor<std::int32_t>("field " + field.name)));
    else
      fields.emplace_back(golden.tensor("field " + field.name));
  }
  return fields;
}

TEST_P(FamilyGolden, LogitsLossAndEveryGradient) {
  const GoldenFile golden(std::string("family_") + GetParam().file);
  const auto backend = GetParam().make();
  const auto model = golden.model();
  const int units = static_cast<int>(model->spec().units.size());
  LocalPipeline pipeline(*backend, *model, {0, 2, units});
  golden.load_weights(pipeline);
  const std::vector<Buffer> buffers = fields_in(golden, model->spec());
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

INSTANTIATE_TEST_SUITE_P(All, FamilyGolden, testing::ValuesIn(family_cases()), [](const auto& one) {
  return fmt::format("{}_{}", one.param.file, one.param.backend);
});

}  // namespace
}  // namespace concertina
