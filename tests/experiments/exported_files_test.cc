// The files that an export has besides its tensors: a tokenizer, configs of tasks, a model card.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "experiments/hugging_face/exported_files.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/published_config_text.h"
#include "io/datasets/sentences.h"
#include "io/tokenizers/sentencepiece_library.h"
#include "models/task.h"
#include "tests/experiments/config_text.h"
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

/// Returns all tokenizers of this repository, and "bytes".
std::vector<std::string> tokenizers_here() {
  std::vector<std::string> all{"bytes"};
  for (const char* folder : {"/tests/golden/tokenizers", "/tests/golden/tokenizers/families"})
    for (const auto& entry : fs::directory_iterator(std::string(CONCERTINA_SOURCE) + folder))
      if (entry.path().filename() != "families" &&
          (has_sentencepiece() || entry.path().extension() != ".model"))
        all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

/// Returns the token and the type of each part.
std::vector<std::pair<std::int32_t, std::int32_t>> parts_of(const SentenceEncoder& encoder,
                                                            bool pair) {
  std::vector<std::pair<std::int32_t, std::int32_t>> parts;
  for (const Marks::Part& part : encoder.parts(pair)) parts.emplace_back(part.token, part.type);
  return parts;
}

TEST(ExportedFiles, EachTokenizerOfEachTaskComesBack) {
  const std::vector<std::pair<std::string, std::string>> models{
      {"bert", "masked-lm"},   {"bert", "classification"}, {"bert", "token-classification"},
      {"bert", "multi-label"}, {"bert", "regression"},     {"bert", "question-answering"},
      {"gpt", "causal-lm"},    {"gpt", "classification"},  {"llama", "token-classification"}};
  std::size_t trips = 0;
  for (const std::string& choice : tokenizers_here()) {
    const auto before = make_tokenizer(choice, "");
    std::set<std::tuple<FileTexts, bool, bool>> seen;
    for (const auto& [family, task] : models) {
      SCOPED_TRACE(fmt::format("{}: {} {}", choice, family, task));
      const TemporaryDirectory root;
      const auto config_of = [&](const std::string& tokenizer) {
        return load_config({},
                           {"model.family=" + family, "model.task=" + task, "model.vocab=300000",
                            "data.tokenizer=" + tokenizer, "run.dir=" + root.path()});
      };
      const FileTexts files = exported_files(config_of(choice));
      const bool masks = find_task(task).masks, causal = task == "causal-lm";
      ++trips;
      if (!seen.emplace(files, masks, causal).second) continue;
      for (const auto& [name, text] : files) write_bytes(root.path() + "/" + name, text);
      const auto after = make_tokenizer(root.path(), "");
      const SentenceEncoder was(before, masks), now(after, masks);
      for (const char* text : {"one of the <mask> </s>", " \xc3\xa9\xe4\xb8\xad 12345", ""})
        EXPECT_EQ(before->tokens(text), after->tokens(text));
      EXPECT_EQ(before->special(SpecialToken::end), after->special(SpecialToken::end));
      if (causal) {
        EXPECT_EQ(before->vocabulary(), after->vocabulary());
      } else {
        EXPECT_EQ(was.vocabulary(), now.vocabulary());
        EXPECT_EQ(was.padding(), now.padding());
        if (masks) {
          EXPECT_EQ(was.mask(), now.mask());
        }
        for (const bool pair : {false, true}) EXPECT_EQ(parts_of(was, pair), parts_of(now, pair));
      }
      // The export can be exported again unchanged.
      const FileTexts again = exported_files(config_of(root.path()));
      EXPECT_TRUE(again == files);
    }
  }
  EXPECT_GT(trips, 200U);
}

TEST(ExportedFiles, UnknownPiecesHaveTheirName) {
  if (!has_sentencepiece()) GTEST_SKIP() << "no libsentencepiece";
  const RunConfig config = load_config(
      {}, {"model.vocab=50257", "model.context=16",
           "data.tokenizer=" CONCERTINA_SOURCE "/tests/golden/tokenizers/small_bpe.model"});
  EXPECT_EQ(json_of_file(exported_files(config), "tokenizer_config.json")["unk_token"], "<unk>");
}

/// The token that ends texts must not pad samples if the head looks for the last token.
TEST(ExportedFiles, PaddingThatEndsTextsIsNotThePadding) {
  const TemporaryDirectory root;
  fs::copy(CONCERTINA_SOURCE "/tests/golden/tokenizers/gpt2", root.path(),
           fs::copy_options::recursive);
  write_bytes(root.path() + "/tokenizer_config.json",
              R"({"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"})");
  const RunConfig config = load_config({}, {"model.task=classification", "model.vocab=50257",
                                            "model.context=16", "data.tokenizer=" + root.path()});
  EXPECT_NE(SentenceEncoder(make_tokenizer(root.path(), "")).padding(), 0);
  EXPECT_FALSE(json_of_file(exported_files(config), "tokenizer_config.json").contains("pad_token"));
}

}  // namespace
}  // namespace concertina
