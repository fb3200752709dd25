// Models as stored by transformers (tests/golden/make_published.py): reading gives the same logits,
// writing the same bytes, and each bad file one error.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/run/planning.h"
#include "tests/experiments/published_folders.h"
#include "tests/models/local_pipeline.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

class Published : public testing::TestWithParam<std::string> {};

TEST_P(Published, LogitsAreThoseOfTransformers) {
  const std::string folder = folder_of(GetParam());
  RunConfig config = config_from(folder);
  config.every_logit = true;
  const PublishedConfig published = read_published_config(folder);
  const PublishedWeights weights(folder, published, config);
  EXPECT_TRUE(weights.missing().empty());
  const auto expected = nlohmann::json::parse(bytes_of_file(folder + "/expected.json"));
  const auto right = expected.at("logits").get<std::vector<float>>();
  const std::vector<float> logits = logits_of(config, weights, expected);
  ASSERT_EQ(logits.size(), right.size());
  float scale = 0, error = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    // Padding rows have no meaning in either program.
    const std::size_t row = i * 36 / right.size();
    if (right.size() > 36 * 2 && expected.contains("attention_mask") &&
        expected.at("attention_mask")[row] == 0)
      continue;
    scale = std::max(scale, std::abs(right[i]));
    error = std::max(error, std::abs(right[i] - logits[i]));
  }
  EXPECT_LE(error, 1e-5F * scale);
}

TEST_P(Published, WrittenAgainIsTheSameBytes) {
  const std::string folder = folder_of(GetParam());
  const TemporaryDirectory root;
  const RunConfig config = config_from(folder, {"run.dir=" + root.path()});
  const PublishedConfig published = read_published_config(folder);
  const PublishedWeights weights(folder, published, config);
  keep_published_config(folder, config);
  const std::string out = root.path() + "/out";
  write_published(out, config, StoredType::f32, [&](const std::string& ours, std::span<float> to) {
    EXPECT_TRUE(weights.read(ours, to));
  });
  EXPECT_TRUE(bytes_of_file(out + "/model.safetensors") ==
              bytes_of_file(folder + "/model.safetensors"));
  EXPECT_EQ(bytes_of_file(out + "/config.json"), bytes_of_file(folder + "/config.json"));
  // Writing the config again preserves what it said.
  write_bytes(out + "/config.json", published_config_text(config, "float32"));
  RunConfig again = config_from(out, {"run.dir=" + root.path()}), before = config;
  again.model.from = before.model.from;
  EXPECT_EQ(write_config(again), write_config(before));
  EXPECT_EQ(std::distance(fs::directory_iterator(out), {}), 2);
}

TEST(PublishedModel, EveryTypeIsInTheGuide) {
  const std::string guide = bytes_of_file(CONCERTINA_SOURCE "/experiments/guide/exchange.md");
  for (const auto& [type, table] : published_models())
    EXPECT_NE(guide.find(fmt::format("`{}`", type)), std::string::npos) << type;
}

TEST(PublishedModel, AHeadThatIsNotThereIsNamed) {
  const std::string folder = folder_of("bert");
  const RunConfig config = config_from(folder, {"model.task=question-answering"});
  const PublishedWeights weights(folder, read_published_config(folder), config);
  EXPECT_EQ(weights.missing().size(), 2U);
  EXPECT_TRUE(weights.missing()[0].ends_with("/span.bias"));
  // Another task ignores the masked model's own head without an error.
  const std::string masked = folder_of("bert-masked-lm");
  const RunConfig other = config_from(masked, {"model.task=classification", "model.classes=5"});
  EXPECT_EQ(PublishedWeights(masked, read_published_config(masked), other).missing().size(), 4U);
}

TEST(PublishedModel, TheProblemTypeSaysTheTask) {
  const auto task_of_folder = [](const std::string& name) {
    return config_from(folder_of(name)).model.task;
  };
  EXPECT_EQ(task_of_folder("bert-classification"), "classification");
  EXPECT_EQ(task_of_folder("bert-regression"), "regression");  // with one class
  EXPECT_EQ(task_of_folder("bert-multi-label"), "multi-label");
  EXPECT_EQ(task_of_folder("bert-token-classification"), "token-classification");
  // The head of another task is initialized anew, even if its tensors have the same names.
  for (const char* task : {"classification", "token-classification", "regression"}) {
    const std::string folder = folder_of("bert-multi-label");
    const RunConfig config =
        config_from(folder, {fmt::format("model.task={}", task), "model.classes=3"});
    EXPECT_EQ(PublishedWeights(folder, read_published_config(folder), config).missing().size(), 2U)
        << task;
  }
}

TEST(PublishedModel, ItsClassesKeepTheirNumbers) {
  const std::string folder = folder_of("bert-token-classification");
  const RunConfig config = config_from(folder);
  EXPECT_EQ(config.data.classes, (std::vector<std::string>{"O", "B-PER", "I-PER"}));
  EXPECT_TRUE(config_from(folder, {"model.head=new"}).data.classes.empty());
  EXPECT_TRUE(config_from(folder_of("bert-classification")).data.classes.empty());  // LABEL_0 ...
  const auto other = nlohmann::json::parse(
      published_config_text(config_from(folder, {R"(data.classes=["a", "b", "c"])"}), "float32"));
  EXPECT_EQ(other["id2label"], nlohmann::json::parse(R"({"0": "a", "1": "b", "2": "c"})"));
}

TEST(PublishedModel, AShorterContextTakesTheFirstPositions) {
  const std::string folder = folder_of("gpt2");
  const RunConfig whole = config_from(folder), part = config_from(folder, {"model.context=5"});
  const PublishedConfig published = read_published_config(folder);
  std::vector<float> all(12 * 16), first(5 * 16);
  PublishedWeights(folder, published, whole).read("000.embedding/wpe", all);
  PublishedWeights(folder, published, part).read("000.embedding/wpe", first);
  EXPECT_TRUE(std::ranges::equal(first, std::span(all).first(first.size())));
}

/// Returns all models except those with only a body.
std::vector<std::string> whole_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_of("")))
    if (entry.path().filename() != "bert") names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Published, testing::ValuesIn(whole_models()), [](const auto& one) {
  std::string name = one.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace concertina
