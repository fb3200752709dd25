// Graphs of every family and task. tests/golden/check_onnx.py has compared models with these graphs
// in onnxruntime with this program's logits; onnx.json has the hashes of the graphs: a changed
// graph fails here until the script has been run again.
#include <gtest/gtest.h>

#include <fstream>

#include "experiments/commands/checkpoint/graph_json.h"
#include "io/sha256.h"
#include "tests/models/golden_file.h"

namespace concertina {
namespace {

class OnnxGolden : public testing::TestWithParam<const char*> {};

TEST_P(OnnxGolden, IsTheGraphThatOnnxruntimeRan) {
  nlohmann::json hashes;
  std::ifstream(std::string(CONCERTINA_GOLDEN) + "/onnx.json") >> hashes;
  const Graph graph = GoldenFile(GetParam()).model()->describe();
  EXPECT_EQ(sha256_hex(graph_json(graph).dump()), hashes.value(GetParam(), "none recorded"));
}

INSTANTIATE_TEST_SUITE_P(Families, OnnxGolden,
                         testing::Values("gradients", "family_llama", "family_llama_tied",
                                         "family_bert_masked_lm", "family_bert_classification",
                                         "family_bert_question_answering", "family_vit",
                                         "family_gpt_classification", "family_llama_classification",
                                         "family_qwen3", "family_neox", "family_phi",
                                         "family_distilbert"));

TEST(ModelGraph, TakesInputsAsExportersOfHuggingFaceNameThem) {
  const auto names = [](const char* golden) {
    std::vector<std::string> list;
    for (const GraphValue& input : GoldenFile(golden).model()->describe().inputs)
      list.push_back(input.name);
    return list;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("gradients"), (Names{"input_ids", "attention_mask", "position_ids"}));
  EXPECT_EQ(names("family_llama"), (Names{"input_ids", "attention_mask", "position_ids"}));
  EXPECT_EQ(names("family_bert_classification"),
            (Names{"input_ids", "attention_mask", "token_type_ids"}));
  EXPECT_EQ(names("family_vit"), Names{"pixel_values"});
  EXPECT_EQ(names("family_gpt_classification"),
            (Names{"input_ids", "attention_mask", "position_ids"}));
}

TEST(ModelGraph, HasEachParameterOnce) {
  for (const char* file : {"gradients", "family_llama", "family_llama_tied", "family_vit"}) {
    const auto model = GoldenFile(file).model();
    std::vector<std::string> wanted, got;
    for (const Bucket& bucket : make_buckets(model->spec()))
      for (const BucketTensor& tensor : bucket.tensors) wanted.push_back(tensor.name);
    for (const GraphTensor& tensor : model->describe().tensors)
      if (!tensor.parameter.empty()) got.push_back(tensor.parameter);
    std::ranges::sort(wanted);
    std::ranges::sort(got);
    EXPECT_EQ(got, wanted) << file;
  }
}

}  // namespace
}  // namespace concertina
