// Adapters as stored by peft (tests/golden/make_published.py): reading gives the same logits,
// writing the same tensors, and each bad folder one error.
#include "experiments/hugging_face/peft.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "experiments/hugging_face/merged_weights.h"
#include "experiments/hugging_face/published_config_text.h"
#include "tests/errors.h"
#include "tests/experiments/published_folders.h"

namespace concertina {
namespace {

std::string peft_folder(const std::string& name) {
  return CONCERTINA_SOURCE "/tests/golden/peft/" + name;
}

/// A model with adapters, as model.from reads it.
struct Adapted {
  explicit Adapted(const std::string& from)
      : folder(from),
        config(config_from(folder)),
        base(base_folder(folder), read_published_config(base_folder(folder)), config),
        adapters(folder, config) {}
  bool read(const std::string& name, std::span<float> out) const {
    return adapters.read(name, out) || base.read(name, out);
  }
  std::vector<float> values(const std::string& name) const {
    for (const Bucket& bucket : make_buckets(model_of(config)->spec()))
      for (const BucketTensor& tensor : bucket.tensors)
        if (tensor.name == name) {
          std::vector<float> all(tensor.count);
          EXPECT_TRUE(read(name, all)) << name;
          return all;
        }
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }

  std::string folder;
  RunConfig config;
  PublishedWeights base;
  PeftWeights adapters;
};

class Peft : public testing::TestWithParam<std::string> {};

TEST_P(Peft, LogitsAreThoseOfPeft) {
  Adapted model(peft_folder(GetParam()));
  model.config.every_logit = true;
  const auto expected = nlohmann::json::parse(bytes_of_file(model.folder + "/expected.json"));
  const std::vector<float> logits = logits_with(
      model.config,
      [&](const std::string& name, std::span<float> out) { return model.read(name, out); },
      expected);
  const auto right = expected.at("logits").get<std::vector<float>>();
  EXPECT_LE(relative_error(logits, right), 1e-5);
  // Without them, the logits differ.
  const std::string folder = base_folder(model.folder);
  const RunConfig config = config_from(folder, {"model.task=" + model.config.model.task});
  RunConfig every = config;
  every.every_logit = true;
  EXPECT_GT(relative_error(
                logits_of(every, PublishedWeights(folder, read_published_config(folder), every),
                          expected),
                right),
            1e-2);
}

/// On export, several modules that are one map here share A; the product is unchanged.
TEST_P(Peft, WrittenAgainIsTheSameModel) {
  const Adapted model(peft_folder(GetParam()));
  const TemporaryDirectory root;
  const std::string out = root.path() + "/out";
  RunConfig config = model.config;
  config.model.from = fs::absolute(base_folder(model.folder)).string();
  write_peft(out, config, StoredType::f32, [&](const std::string& ours, std::span<float> to) {
    EXPECT_TRUE(model.read(ours, to));
  });
  const Adapted again(out);
  // Names of modules are whole: peft would also adapt other modules whose names end like theirs.
  const auto modules = nlohmann::json::parse(bytes_of_file(out + "/adapter_config.json"))
                           .at("target_modules")
                           .get<std::vector<std::string>>();
  const SafetensorsFile file(out + "/adapter_model.safetensors");
  for (const std::string& module : modules)
    EXPECT_TRUE(file.tensors().contains("base_model.model." + module + ".lora_A.weight")) << module;
  const auto expected = nlohmann::json::parse(bytes_of_file(model.folder + "/expected.json"));
  const auto logits = [&](const Adapted& one) {
    return logits_with(
        one.config,
        [&](const std::string& name, std::span<float> values) { return one.read(name, values); },
        expected);
  };
  EXPECT_LE(relative_error(logits(again), logits(model)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, Peft, testing::Values("gpt2", "llama", "bert-classification"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

/// Copies a folder with a change in its config and the base model's path; returns the copy.
std::string changed(const std::string& name, const TemporaryDirectory& root,
                    const std::string& from = "", const std::string& to = "") {
  std::string path = root.path() + "/adapter";
  fs::copy(peft_folder(name), path);
  std::string text = bytes_of_file(path + "/adapter_config.json");
  const std::size_t at = text.find(from);
  CONCERTINA_CHECK(at != std::string::npos, "{}", from);
  text.replace(at, from.size(), to);
  if (const std::size_t base = text.find("../../published"); base != std::string::npos)
    text.replace(base, 15, CONCERTINA_SOURCE "/tests/golden/published");
  write_bytes(path + "/adapter_config.json", text);
  return path;
}

TEST(PeftFolder, BadFoldersAreRefused) {
  struct Bad {
    std::string from, to, error;
  };
  const std::vector<Bad> all{
      {R"("peft_type": "LORA")", R"("peft_type": "IA3")", "peft_type = \"IA3\""},
      {R"("bias": "none")", R"("bias": "all")", "bias = \"all\""},
      {R"("use_dora": false)", R"("use_dora": true)", "use_dora = true is not supported"},
      {R"("r": 3)", R"("r": 0)", "r = 0"},
      {R"("r": 3)", R"("r": 4)",
       "has the shape [3, 16], but the base model and the rank need [4, 16]"},
      {R"("use_rslora": false)", R"("use_rslora": 1)", "use_rslora = 1"},
      {R"("use_dora": false)", R"("new_key": [1])", "new_key = [1] is not supported"},
      {"../../published/gpt2", "openai-community/gpt2", "is not a folder"},
  };
  for (const Bad& bad : all) {
    const TemporaryDirectory root;
    const std::string path = changed("gpt2", root, bad.from, bad.to);
    expect_has(input_error([&] { Adapted(path).values("001.attention/qkv.lora_a"); }).what(),
               bad.error);
  }
}

/// Replaces a text of the same size in the header of a copy's weights.
void expect_refused(const std::string& name, const std::string& from, const std::string& to,
                    const std::string& tensor, const std::string& error) {
  const TemporaryDirectory root;
  const std::string path = changed(name, root);
  std::string weights = bytes_of_file(path + "/adapter_model.safetensors");
  const std::size_t at = weights.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  write_bytes(path + "/adapter_model.safetensors", weights.replace(at, from.size(), to));
  expect_has(input_error([&] { Adapted(path).values(tensor); }).what(), error);
}

TEST(PeftFolder, MissingAdaptersAreRefused) {
  const std::string adapter = "001.attention/qkv.lora_a";
  const TemporaryDirectory root, limited;
  const std::string path = changed("llama", root, "\"gate_proj\"", "\"up_proj\"");
  expect_has(input_error([&] { Adapted(path).values(adapter); }).what(),
             "layers.0.mlp.up_proj.lora_A.weight' is missing, but target_modules includes it");
  EXPECT_NO_THROW(Adapted(changed("llama", limited, "\"layers_to_transform\": null",
                                  "\"layers_to_transform\": [0, 1]"))
                      .values(adapter));
}

TEST(PeftFolder, TensorsOfOtherShapesAreRefused) {
  expect_refused("gpt2", "c_attn.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[3,16]",
                 "c_attn.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[16,3]",
                 "001.attention/qkv.lora_a", "has the shape [16, 3]");
  expect_refused("bert-classification", "classifier.weight\":{\"dtype\":\"F32\",\"shape\":[3,16]",
                 "classifier.weight\":{\"dtype\":\"F32\",\"shape\":[16,3]",
                 "005.head/classes.weight", "has the shape [16, 3]");
  expect_refused("gpt2", "h.0.attn.c_attn.lora_B", "h.0.attn.c_attn.lora_X",
                 "001.attention/qkv.lora_a", "c_attn.lora_B.weight' is missing");
}

}  // namespace
}  // namespace concertina
