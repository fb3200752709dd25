// ONNX models of every family and task. tests/golden/check_onnx.py has run the golden ones in
// onnxruntime against PyTorch's logits, and recorded the hashes of their files in onnx.json: a
// graph that changes fails here until it has been run again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "io/export/onnx_writer.h"
#include "io/file.h"
#include "io/sha256.h"
#include "tests/models/golden_file.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 24;

TensorReader reader_of(const GoldenFile& golden) {
  return [&golden](const std::string& name, std::span<float> values) {
    const std::vector<float> stored = golden.tensor(name);
    ASSERT_EQ(stored.size(), values.size()) << name;
    std::ranges::copy(stored, values.begin());
  };
}

nlohmann::json checked_hashes() {
  nlohmann::json json;
  std::ifstream(std::string(CONCERTINA_GOLDEN) + "/onnx.json") >> json;
  return json;
}

class Onnx : public testing::Test {
 protected:
  void SetUp() override {
    if (!onnx_available()) GTEST_SKIP() << "built without libonnx";
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  const GoldenFile golden_{"family_bert_masked_lm"};
  const Graph graph_ = golden_.model()->describe();
  TemporaryDirectory directory_;
};

class OnnxGolden : public Onnx, public testing::WithParamInterface<const char*> {};

TEST_P(OnnxGolden, IsTheModelThatOnnxruntimeRan) {
  const GoldenFile golden(GetParam());
  const char* const keep = std::getenv("CONCERTINA_ONNX_OUT");
  const std::string file =
      (keep != nullptr ? keep : directory_.path()) + "/" + GetParam() + ".onnx";
  const OnnxFiles files = write_onnx(golden.model()->describe(), reader_of(golden), file);
  EXPECT_EQ(files.data, "");
  const std::string hash = sha256_hex(read_file(file, kMost));
  EXPECT_EQ(hash, checked_hashes().value(GetParam(), "none recorded"))
      << "run tests/golden/check_onnx.py golden";
}

INSTANTIATE_TEST_SUITE_P(Families, OnnxGolden,
                         testing::Values("gradients", "family_llama", "family_llama_tied",
                                         "family_bert_masked_lm", "family_bert_classification",
                                         "family_bert_question_answering", "family_vit",
                                         "family_gpt_classification",
                                         "family_llama_classification", "family_qwen3",
                                         "family_neox", "family_phi", "family_distilbert"));

TEST_F(Onnx, WeightsOfTheirOwnFileLieAtPagesAndAreTheWeights) {
  const OnnxOptions apart{.inline_limit = 0};
  const OnnxFiles files = write_onnx(graph_, reader_of(golden_), path("m.onnx"), apart);
  EXPECT_EQ(files.data, path("m.onnx_data"));
  const std::string data = read_file(files.data, kMost);
  EXPECT_EQ(data.size(), files.data_bytes);
  std::uint64_t at = 0;
  int external = 0;
  for (const GraphTensor& tensor : graph_.tensors) {
    if (tensor.bytes() < 1024 || tensor.type != GraphType::f32) continue;
    ++external;
    at = (at + 4095) / 4096 * 4096;
    const std::vector<float> wanted = golden_.tensor(tensor.parameter);
    ASSERT_LE(at + tensor.bytes(), data.size());
    EXPECT_EQ(std::memcmp(data.data() + at, wanted.data(), tensor.bytes()), 0) << tensor.name;
    at += tensor.bytes();
  }
  EXPECT_GT(external, 5);
  EXPECT_EQ(at, data.size());
}

TEST_F(Onnx, TheSameExportIsTheSameBytes) {
  const OnnxOptions apart{.inline_limit = 0, .facts = {{"b", "2"}, {"a", "1"}}};
  const auto bytes = [&](const std::string& name) {
    const OnnxFiles files = write_onnx(graph_, reader_of(golden_), path(name), apart);
    return std::pair(read_file(files.model, kMost), read_file(files.data, kMost));
  };
  const auto first = bytes("m.onnx");
  EXPECT_EQ(first, bytes("m.onnx"));
  std::filesystem::create_directory(path("other"));
  EXPECT_EQ(first, bytes("other/m.onnx"));
}

TEST_F(Onnx, AModelThatHoldsItsWeightsLeavesNoOldFileOfWeights) {
  write_onnx(graph_, reader_of(golden_), path("m.onnx"), {.inline_limit = 0});
  EXPECT_TRUE(std::filesystem::exists(path("m.onnx_data")));
  write_onnx(graph_, reader_of(golden_), path("m.onnx"));
  EXPECT_FALSE(std::filesystem::exists(path("m.onnx_data")));
}

TEST_F(Onnx, AnExportThatFailsLeavesTheOldOne) {
  write_onnx(graph_, reader_of(golden_), path("m.onnx"));
  const std::string before = read_file(path("m.onnx"), kMost);
  const TensorReader broken = [](const std::string& name, std::span<float>) {
    throw_failure("cannot be read", name);
  };
  EXPECT_THROW(write_onnx(graph_, broken, path("m.onnx")), Error);
  EXPECT_EQ(read_file(path("m.onnx"), kMost), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1);
}

/// kB of the process's memory: "VmRSS" now, "VmHWM" at most.
long kilobytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(key + ":", 0) == 0) return std::stol(line.substr(key.size() + 1));
  return 0;
}

/// The model has 96 MiB of weights; CONCERTINA_ONNX_WIDTH=1664 makes it 3 GiB.
TEST_F(Onnx, TheWholeModelIsNeverInMemory) {
  const char* const asked = std::getenv("CONCERTINA_ONNX_WIDTH");
  const std::int64_t width = asked != nullptr ? std::stol(asked) : 288;
  const auto model = make_model(
      "gpt", {.layers = 24, .width = width, .heads = 1, .context = 16, .vocab = 256, .samples = 1});
  const TensorReader ones = [](const std::string&, std::span<float> values) {
    std::ranges::fill(values, 1.0F);
  };
  const Graph graph = model->describe();
  std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM starts anew
  const long before = kilobytes("VmRSS");
  const OnnxFiles files = write_onnx(graph, ones, path("big.onnx"), {.inline_limit = 0});
  const long more = kilobytes("VmHWM") - before;
  const auto weights = static_cast<long>(files.data_bytes / 1024);
  const auto largest = static_cast<long>(width * width * 16 / 1024);
  std::cout << weights << " kB of weights, " << more << " kB more than before\n";
  EXPECT_GT(weights, asked != nullptr ? 0 : 90'000);
  EXPECT_LT(more, 20'000 + largest);
}

TEST_F(Onnx, AGraphThatDoesNotFitIsRefused) {
  const auto refused = [&](const char* word, const std::function<void(Graph&)>& edit) {
    Graph graph = graph_;
    edit(graph);
    try {
      write_onnx(graph, reader_of(golden_), path("m.onnx"));
      FAIL() << word;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(word), std::string::npos) << error.message();
    }
    EXPECT_FALSE(std::filesystem::exists(path("m.onnx")));
  };
  refused("Incompatible dimensions", [](Graph& graph) {
    for (GraphTensor& tensor : graph.tensors)
      if (tensor.name == "001.attention/proj.weight") tensor.shape = {23, 24};
  });
  refused("shape inference", [](Graph& graph) {
    graph.outputs.front().shape.back() = std::int64_t{36};  // one token fewer
  });
  refused("No Op registered for MatMull", [](Graph& graph) {
    for (GraphNode& node : graph.nodes)
      if (node.op == "MatMul") node.op = "MatMull";
  });
}

TEST(OnnxStub, SaysWhatIsMissing) {
  if (onnx_available()) GTEST_SKIP() << "built with libonnx";
  EXPECT_THROW(write_onnx({}, {}, "m.onnx"), Error);
}

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
