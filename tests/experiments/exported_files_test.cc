// What an export has beside its tensors: a tokenizer, configs of its uses, a card.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/hugging_face/exported_files.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/model_card.h"
#include "tests/experiments/published_folders.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

nlohmann::json json_of_file(const FileTexts& files, const std::string& name) {
  EXPECT_TRUE(files.contains(name)) << name;
  return files.contains(name) ? nlohmann::json::parse(files.at(name)) : nlohmann::json();
}

TEST(ExportedFiles, ATokenizerIsKeptAndGivenBackWhenItIsGone) {
  const TemporaryDirectory root;
  const std::string source = CONCERTINA_SOURCE "/tests/golden/tokenizers/uncased.txt";
  const std::string there = root.path() + "/theirs/vocab.txt";
  fs::create_directories(root.path() + "/theirs");
  fs::copy_file(source, there);
  write_bytes(root.path() + "/theirs/tokenizer_config.json",
              R"({"model_max_length": 512, "tokenizer_class": "BertTokenizer", "other": 1})");
  RunConfig config = load_config(
      {}, {"model.family=bert", "model.task=classification", "model.classes=3", "model.vocab=30522",
           "model.context=24", "data.tokenizer=" + there, "run.dir=" + root.path()});
  const std::vector<std::string> names{"good", "bad", "so-so"};
  keep_for_export(config, names);
  fs::remove_all(root.path() + "/theirs");
  config = with_kept_tokenizer(config);
  EXPECT_EQ(config.data.tokenizer, run_directory(config) + "/tokenizer");
  const FileTexts files = exported_files(config);
  EXPECT_EQ(files.at("vocab.txt"), bytes_of_file(source));
  const auto settings = json_of_file(files, "tokenizer_config.json");
  EXPECT_EQ(settings["model_max_length"], 24);
  EXPECT_EQ(settings["cls_token"], "[CLS]");
  EXPECT_EQ(settings["padding_side"], "right");
  EXPECT_EQ(settings["other"], 1);
  EXPECT_EQ(settings["model_input_names"],
            (nlohmann::json{"input_ids", "attention_mask", "token_type_ids"}));
  const auto described = json_of_file(files, "tokenizer.json");
  EXPECT_EQ(described["post_processor"]["type"], "TemplateProcessing");
  EXPECT_FALSE(files.contains("generation_config.json"));
  const auto model = nlohmann::json::parse(published_config_text(config, "float32"));
  EXPECT_EQ(model["id2label"], (nlohmann::json{{"0", "good"}, {"1", "bad"}, {"2", "so-so"}}));
  EXPECT_EQ(model["label2id"]["so-so"], 2);
}

TEST(ExportedFiles, ACausalModelSaysWhereTextsEnd) {
  const RunConfig config =
      load_config({}, {"model.vocab=50257", "model.context=16",
                       "data.tokenizer=" CONCERTINA_SOURCE "/tests/golden/tokenizers/gpt2"});
  const FileTexts files = exported_files(config);
  EXPECT_EQ(json_of_file(files, "generation_config.json")["max_length"], 16);
  EXPECT_TRUE(json_of_file(files, "tokenizer_config.json")["padding_side"] == "left");
  EXPECT_TRUE(json_of_file(files, "tokenizer.json")["post_processor"].is_null());
  EXPECT_EQ(pipeline_of(config), "text-generation");
}

TEST(ExportedFiles, ImagesAreNormalisedAsTheRunDid) {
  const RunConfig config =
      load_config({}, {"model.family=vit", "model.vit.image=32", "model.vit.patch=8",
                       "model.vit.channels=3", "data.format=cifar10", "data.files=train.bin",
                       "data.mean=[0.5, 0.4, 0.3]", "data.deviation=0.25"});
  const FileTexts files = exported_files(config);
  ASSERT_EQ(files.size(), 1);
  const auto settings = json_of_file(files, "preprocessor_config.json");
  EXPECT_EQ(settings["image_mean"], (nlohmann::json{0.5, 0.4, 0.3}));
  EXPECT_EQ(settings["image_std"], (nlohmann::json{0.25, 0.25, 0.25}));
  EXPECT_EQ(settings["size"], (nlohmann::json{{"height", 32}, {"width", 32}}));
  EXPECT_EQ(settings["rescale_factor"], 1.0 / 255);
  EXPECT_EQ(pipeline_of(config), "image-classification");
}

TEST(ExportedFiles, TheCardHasTheFiguresOfItsStep) {
  const TemporaryDirectory root;
  StoredRun run;
  run.config = load_config({}, {"run.dir=" + root.path(), "run.name=one", "batch.global=8",
                                "data.text=/far/away/book.txt"});
  run.directory = run_directory(run.config);
  fs::create_directories(run.directory);
  write_bytes(
      run.directory + "/events.jsonl",
      "{\"step\":4,\"event\":\"validation\",\"loss\":3.5,\"tokens\":90}\n"
      "{\"step\":8,\"event\":\"validation\",\"loss\":2.5,\"tokens\":90,\"accuracy\":0.75}\n");
  write_bytes(run.directory + "/launches.jsonl",
              R"({"command":["/home/of/concertina","train","data.text=a b"],"from":0,"ranks":4})"
              "\n"
              R"({"command":["concertina","train","B"],"from":8})"
              "\n");
  const std::string card = model_card(run, 8);
  for (const char* part :
       {"# one\n", "pipeline_tag: text-generation", "| started from | random weights |", "book.txt",
        "| steps | 8, of 8 samples each |", "\nmpirun -n 4 concertina train 'data.text=a b'\n",
        "| held out | loss 2.5000 nats over 90 targets, accuracy 0.7500 |"})
    EXPECT_NE(card.find(part), std::string::npos) << part << " is not in\n" << card;
  EXPECT_EQ(card.find("train B"), std::string::npos);
  EXPECT_EQ(card.find("/far"), std::string::npos);
  EXPECT_EQ(model_card(run, 6).find("held out"), std::string::npos);
}

/// All but a body alone.
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
