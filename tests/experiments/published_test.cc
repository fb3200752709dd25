// Models as transformers stores them (tests/golden/make_published.py): the same logits when they
// are read, the same bytes when they are written again, and one error for each bad file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/exported_files.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/model_card.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/run/planning.h"
#include "tests/models/local_pipeline.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

std::string folder_of(const std::string& name) {
  return CONCERTINA_SOURCE "/tests/golden/published/" + name;
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

RunConfig config_from(const std::string& folder, Settings sets = {}) {
  sets.insert(sets.end(), {"model.from=" + folder, "batch.global=3", "batch.microbatches=1"});
  RunConfig config;
  for (const std::string& assignment : sets) set_config(assignment, config);
  adopt_model_from(config);
  validate(config);
  return config;
}

/// A field of the model as expected.json has it, under transformers' name.
Buffer field_buffer(const Field& field, const nlohmann::json& expected, std::int64_t samples) {
  const std::string name = field.name == "tokens"  ? "input_ids"
                           : field.name == "types" ? "token_type_ids"
                           : field.name == "image" ? "pixel_values"
                                                   : field.name;
  const auto count = static_cast<std::size_t>(field.elements() * samples);
  if (field.name == "scores") return Buffer(count);  // of no matter here
  if (field.type == DType::f32) return Buffer(expected.at(name).get<std::vector<float>>());
  Buffer buffer(count, DType::i32);
  std::int32_t* const out = buffer.view().i32();
  std::fill_n(out, count, 0);  // targets: of no matter here
  if (field.name == "lengths") {
    const auto mask = expected.at("attention_mask").get<std::vector<std::int32_t>>();
    const std::size_t rows = mask.size() / count;
    for (std::size_t i = 0; i < mask.size(); ++i) out[i / rows] += mask[i];
  } else if (expected.contains(name)) {
    std::ranges::copy(expected.at(name).get<std::vector<std::int32_t>>(), out);
  }
  return buffer;
}

std::vector<float> logits_of(const RunConfig& config, const PublishedWeights& weights,
                             const nlohmann::json& expected) {
  const auto backend = make_cpu_backend(1);
  const std::unique_ptr<Model> model = model_of(config);
  LocalPipeline pipeline(*backend, *model, {0, static_cast<int>(model->spec().units.size())});
  pipeline.initialize(0);
  for (const Bucket& bucket : pipeline.buckets())
    for (const BucketTensor& tensor : bucket.tensors)
      EXPECT_TRUE(weights.read(tensor.name, {pipeline.weight(tensor.name).f32(), tensor.count}));
  pipeline.refresh();
  std::vector<Buffer> buffers;
  for (const Field& field : fields_of(model->spec()))
    buffers.push_back(field_buffer(field, expected, 3));
  std::vector<View> fields;
  for (const Buffer& buffer : buffers) fields.push_back(buffer.view());
  std::vector<float> logits;
  pipeline.evaluate(fields, logits);
  return logits;
}

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
    // Rows of padding say nothing, here as there.
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
  // What we would say of the model is what it said.
  write_bytes(out + "/config.json", published_config_text(config, "float32"));
  RunConfig again = config_from(out, {"run.dir=" + root.path()}), before = config;
  again.model.from = before.model.from;
  EXPECT_EQ(write_config(again), write_config(before));
  EXPECT_EQ(std::distance(fs::directory_iterator(out), {}), 2);
}

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
  // The masked model's own head is of no use to another task, and no error.
  const std::string masked = folder_of("bert-masked-lm");
  const RunConfig other = config_from(masked, {"model.task=classification", "model.classes=5"});
  EXPECT_EQ(PublishedWeights(masked, read_published_config(masked), other).missing().size(), 4U);
}

TEST(PublishedModel, TheProblemTypeSaysTheTask) {
  const auto task_of_folder = [](const std::string& name) {
    return config_from(folder_of(name)).model.task;
  };
  EXPECT_EQ(task_of_folder("bert-classification"), "classification");
  EXPECT_EQ(task_of_folder("bert-regression"), "regression");  // of one class
  EXPECT_EQ(task_of_folder("bert-multi-label"), "multi-label");
  EXPECT_EQ(task_of_folder("bert-token-classification"), "token-classification");
  // What is told of another task begins anew, whatever it is called there.
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

struct Copied {
  explicit Copied(const std::string& name) : path(root.path() + "/model") {
    fs::copy(folder_of(name), path);
  }
  void change(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = bytes_of_file(path + "/" + file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_bytes(path + "/" + file, text.replace(at, from.size(), to));
  }
  /// Opens all of it; empty: it was accepted.
  std::string error(const Settings& sets = {}) const {
    try {
      const RunConfig config = config_from(path, sets);
      const PublishedWeights weights(path, read_published_config(path), config);
      weights.check_copies();
      std::vector<float> values;
      const ModelSpec spec = model_of(config)->spec();
      for (const Bucket& bucket : make_buckets(spec))
        for (const BucketTensor& tensor : bucket.tensors) {
          values.resize(tensor.count);
          weights.read(tensor.name, values);
        }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input) << error.what();
      EXPECT_FALSE(error.fix().empty());
      return error.what();
    }
    return "";
  }

  TemporaryDirectory root;
  std::string path;
};

TEST(PublishedModel, WhatWouldChangeFiguresIsRefused) {
  struct Change {
    std::string name, from, to, says;
  };
  const std::vector<Change> changes{
      {"gpt2", "\"gelu_new\"", "\"mish\"", "activation_function"},
      {"gpt2", "\"scale_attn_by_inverse_layer_idx\": false",
       "\"scale_attn_by_inverse_layer_idx\": true", "scale_attn_by_inverse_layer_idx"},
      {"gpt2", "GPT2LMHeadModel", "GPT2DoubleHeadsModel", "GPT2DoubleHeadsModel"},
      {"gpt2", "\"gpt2\"", "\"mamba\"", "mamba"},
      {"gpt2", "\"use_cache\"", "\"sparse\"", "sparse"},
      {"gpt2", "\"n_layer\": 2", "\"n_layer\": 3", "transformer.h.2"},
      {"gpt2", "\"n_layer\": 2", "\"n_layer\": 1", "not expected"},
      {"gpt2", "\"n_layer\": 2", "\"n_layer\": -2", "n_layer"},
      {"gpt2", "\"n_embd\": 16", "\"n_embd\": 32", "shape"},
      {"gpt2", "\"n_embd\": 16", "\"n_embd\": \"wide\"", "n_embd"},
      {"llama", "\"attention_bias\": false", "\"attention_bias\": true", "_proj.bias"},
      {"llama", "\"default\"", "\"llama3\"", "rope_original"},
      {"llama", "\"default\"", "\"longrope\"", "rope_type"},
      {"llama", "\"head_dim\": 4", "\"head_dim\": 8", "shape"},
      {"mistral", "\"sliding_window\": 12", "\"sliding_window\": 8", "8 keys at most"},
      {"qwen2", "\"use_sliding_window\": false", "\"use_sliding_window\": true",
       "use_sliding_window"},
      {"qwen2", "\"full_attention\"", "\"sliding_attention\"", "layer_types"},
      {"bert-classification", "\"LABEL_2\"", "\"LABEL_2\", \"3\": \"LABEL_3\"", "shape"},
      {"gpt2-classification", "\"use_cache\"", "\"problem_type\": \"ordinal\", \"use_cache\"",
       "problem_type"},
      {"llama", "\"use_cache\"", "\"rope_theta\": 500.0, \"use_cache\"",
       "rope_parameters.rope_theta is 10000.0, and rope_theta is 500.0"},
      {"llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4", "shape"},
      {"bert-masked-lm", "\"is_decoder\": false", "\"is_decoder\": true", "is_decoder"},
      {"vit", "\"qkv_bias\": true", "\"qkv_bias\": false", "not expected"}};
  for (const Change& change : changes) {
    const Copied copy(change.name);
    copy.change("config.json", change.from, change.to);
    EXPECT_NE(copy.error().find(change.says), std::string::npos)
        << change.to << ": " << copy.error();
  }
  const Copied copy("gpt2");
  EXPECT_NE(copy.error({"model.width=64"}).find("model.width"), std::string::npos);
  EXPECT_NE(copy.error({"model.family=llama"}).find("model.family"), std::string::npos);
  EXPECT_NE(copy.error({"model.context=13"}).find("model.context"), std::string::npos);
  fs::remove(copy.path + "/model.safetensors");
  EXPECT_NE(copy.error().find("model.safetensors"), std::string::npos);
}

// Whoever reads a config makes a model of it next: gigabytes, if one number of config.json is
// wrong.
TEST(PublishedModel, NumbersThatTheTensorsDoNotHaveAreRefusedWithTheConfig) {
  struct Change {
    std::string name, from, to, says;
  };
  for (const Change& change :
       {Change{"gpt2", "\"vocab_size\": 40", "\"vocab_size\": 1000000", "wte"},
        {"llama", "\"intermediate_size\": 32", "\"intermediate_size\": 1000000", "mlp"},
        {"bert-masked-lm", "\"intermediate_size\": 24", "\"intermediate_size\": 1000000", "dense"},
        {"llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 100000", "100000 layers"}}) {
    const Copied copy(change.name);
    copy.change("config.json", change.from, change.to);
    try {
      config_from(copy.path);
      ADD_FAILURE() << change.to << " was accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(change.says), std::string::npos) << error.what();
    }
    fs::remove(copy.path + "/model.safetensors");
    EXPECT_NO_THROW(config_from(copy.path)) << "a config.json alone can be planned";
  }
}

TEST(PublishedModel, LyingHeadersAreRefused) {
  struct Lie {
    std::string from, to, says;
  };
  for (const Lie& lie : {Lie{"\"F32\"", "\"U32\"", "U32"},
                         {"[0,192]", "[0,191]", "data_offsets"},
                         {"[0,192]", "[4,192]", "data_offsets"},
                         {"[48]", "[-8]", "shape"},
                         {"[48]", "[47]", "takes"},
                         {"\"pt\"", "1234", "__metadata__"},
                         {"c_attn.bias", "c_proj.bias", "twice"},
                         {"{", "[", "'{'"}}) {
    const Copied copy("gpt2");
    copy.change("model.safetensors", lie.from, lie.to);
    EXPECT_NE(copy.error().find(lie.says), std::string::npos) << lie.to << ": " << copy.error();
  }
  const Copied copy("gpt2");
  const std::string file = copy.path + "/model.safetensors", bytes = bytes_of_file(file);
  for (const std::string& damaged :
       {bytes.substr(0, 4), bytes.substr(0, 100), bytes.substr(0, bytes.size() - 1), bytes + "x",
        std::string(8, '\xff') + bytes.substr(8)}) {
    write_bytes(file, damaged);
    EXPECT_NE(copy.error().find("model.safetensors"), std::string::npos) << copy.error();
  }
}

TEST(PublishedModel, AnIndexOfSeveralFilesIsOneModel) {
  const Copied copy("gpt2");
  const std::string single = copy.path + "/model.safetensors";
  const SafetensorsFile whole(single);
  nlohmann::json map;
  for (const int part : {0, 1}) {
    std::vector<StoredTensor> tensors;
    const std::string name = fmt::format("model-0000{}-of-00002.safetensors", part + 1);
    int i = 0;
    for (const auto& [tensor, stored] : whole.tensors())
      if (i++ % 2 == part) {
        tensors.push_back(stored);
        map[tensor] = name;
      }
    SafetensorsWriter writer(copy.path + "/" + name, tensors);
    for (const StoredTensor& tensor : writer.tensors()) {
      std::vector<float> values(tensor.elements());
      whole.read(whole.tensors().at(tensor.name), 0, values);
      writer.append(values);
    }
    writer.finish();
  }
  fs::remove(single);
  const auto write_index = [&] {
    write_bytes(single + ".index.json", nlohmann::json{{"weight_map", map}}.dump());
  };
  write_index();
  EXPECT_EQ(copy.error(), "");
  map["transformer.wte.weight"] = "../model.safetensors";
  write_index();
  EXPECT_NE(copy.error().find("in no file of this folder"), std::string::npos);
  map.erase("transformer.wte.weight");
  write_index();
  EXPECT_NE(copy.error().find("not by the index"), std::string::npos) << copy.error();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

TEST(PublishedModel, IsWrittenInFilesOfALargestSize) {
  const std::string folder = folder_of("llama");
  const RunConfig config = config_from(folder);
  const PublishedConfig published = read_published_config(folder);
  const PublishedWeights weights(folder, published, config);
  const TemporaryDirectory root;
  const std::string out = root.path() + "/out";
  const auto write = [&](std::uint64_t most) {
    write_published(
        out, config, StoredType::f32,
        [&](const std::string& ours, std::span<float> to) { weights.read(ours, to); }, most);
  };
  const SafetensorsFile whole(folder + "/model.safetensors");
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : whole.tensors()) total += tensor.bytes();
  const std::vector<std::string> single{"config.json", "model.safetensors"};

  constexpr std::uint64_t kMost = 2500;  // less than a token table has
  write(kMost);
  const auto index = nlohmann::json::parse(bytes_of_file(out + "/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], total);
  EXPECT_EQ(index["metadata"]["total_parameters"], total / 4);
  std::vector<std::string> files{"config.json", "model.safetensors.index.json"};
  std::size_t tensors = 0, over = 0;
  for (const std::string& name : names_in(out)) {
    if (!name.ends_with(".safetensors")) continue;
    files.push_back(name);
    const SafetensorsFile part(out + "/" + name);
    std::uint64_t bytes = 0;
    for (const auto& [tensor, stored] : part.tensors()) {
      EXPECT_EQ(index["weight_map"][tensor], name);
      bytes += stored.bytes();
      std::vector<float> got(stored.elements()), wanted(stored.elements());
      part.read(stored, 0, got);
      whole.read(whole.tensors().at(tensor), 0, wanted);
      EXPECT_EQ(got, wanted) << tensor;
    }
    EXPECT_TRUE(bytes <= kMost || part.tensors().size() == 1) << name;
    over += bytes > kMost ? 1 : 0;
    tensors += part.tensors().size();
  }
  EXPECT_EQ(tensors, whole.tensors().size());
  EXPECT_GT(over, 0U);
  EXPECT_GT(files.size(), 6U);
  std::ranges::sort(files);
  EXPECT_EQ(names_in(out), files);
  EXPECT_NE(
      std::ranges::find(files, fmt::format("model-00001-of-{:05}.safetensors", files.size() - 2)),
      files.end());
  EXPECT_TRUE(
      PublishedWeights(out, read_published_config(out), config_from(out)).missing().empty());

  // Nothing of an export before is left: neither of one nor of several files.
  write(total);
  EXPECT_EQ(names_in(out), single);
  EXPECT_EQ(bytes_of_file(out + "/model.safetensors"), bytes_of_file(whole.path()));
  write(2 * kMost);
  const std::vector<std::string> fewer = names_in(out);
  EXPECT_LT(fewer.size(), files.size());
  EXPECT_FALSE(fs::exists(out + "/model.safetensors"));
  // An export that fails leaves the one before.
  const auto fail = [](const std::string&, std::span<float>) { throw_failure("full", "disk"); };
  EXPECT_THROW(write_published(out, config, StoredType::f32, fail, kMost), Error);
  EXPECT_EQ(names_in(out), fewer);
  EXPECT_TRUE(
      PublishedWeights(out, read_published_config(out), config_from(out)).missing().empty());
}

TEST(Safetensors, HalvesAndBrainFloatsAreReadExactly) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/a.safetensors";
  const std::string header =
      R"({"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"h":{"dtype":"F16","shape":[6],"data_offsets":[4,16]},"d":{"dtype":"F64","shape":[],"data_offsets":[16,24]}})";
  const std::uint64_t length = header.size();
  const std::uint16_t values[] = {0x3FC0, 0xC000, 0x3C00, 0x0001, 0x83FF, 0x7C00, 0x7BFF, 0x0400};
  const double d = 0.1;
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  bytes.append(reinterpret_cast<const char*>(&d), 8);
  write_bytes(path, bytes);
  const SafetensorsFile file(path);
  std::vector<float> read(2);
  file.read(file.tensors().at("b"), 0, read);
  EXPECT_EQ(read, (std::vector<float>{1.5F, -2}));
  read.resize(6);
  file.read(file.tensors().at("h"), 0, read);
  EXPECT_EQ(read, (std::vector<float>{1, 0x1p-24F, -1023 * 0x1p-24F,
                                      std::numeric_limits<float>::infinity(), 65504, 0x1p-14F}));
  read.resize(1);
  file.read(file.tensors().at("d"), 0, read);
  EXPECT_EQ(read[0], 0.1F);
}

/// CONCERTINA_MUTATIONS: how many of each file.
TEST(PublishedModel, DamagedFilesAreErrorsAndNothingElse) {
  const char* const asked = std::getenv("CONCERTINA_MUTATIONS");
  const int mutations = asked == nullptr ? 60 : std::atoi(asked);
  for (const std::string file : {"model.safetensors", "config.json"}) {
    const Copied copy("llama");
    const std::string whole = bytes_of_file(copy.path + "/" + file);
    const std::size_t text = file == "config.json" ? whole.size() : 2500;
    for (int i = 0; i < mutations; ++i) {
      std::mt19937_64 random(static_cast<std::uint64_t>(i));
      std::string bytes = whole;
      for (int left = 1 + static_cast<int>(random() % 3); left > 0 && !bytes.empty(); --left) {
        const std::size_t at = random() % std::min(text, bytes.size());
        switch (random() % 5) {
          case 0:
            bytes[at] = static_cast<char>(random());
            break;
          case 1:
            bytes[at] = static_cast<char>('0' + random() % 10);
            break;
          case 2:
            bytes.erase(at, 1 + random() % 8);
            break;
          case 3:
            bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 20));
            break;
          default:
            bytes.resize(at + 1);
        }
      }
      write_bytes(copy.path + "/" + file, bytes);
      copy.error();  // checks what is thrown
    }
  }
}

}  // namespace
}  // namespace concertina
