// Bad folders of published models give one error each; a model may be split into several files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <sstream>

#include "core/error.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/run/planning.h"
#include "tests/errors.h"
#include "tests/experiments/published_folders.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

struct Copied : PublishedCopy {
  using PublishedCopy::PublishedCopy;
  /// Opens the whole model; returns the error, or an empty string.
  std::string error(const Settings& sets = {}) const {
    try {
      const RunConfig adopted = config_from(path, sets);
      const PublishedWeights weights(path, read_published_config(path), adopted);
      weights.check_copies();
      std::vector<float> values;
      const ModelSpec spec = model_of(adopted)->spec();
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
};

TEST(PublishedModel, WhatWouldChangeFiguresIsRefused) {
  std::istringstream rows(bytes_of_file(CONCERTINA_SOURCE "/tests/experiments/published.refused"));
  const std::regex between(R"( \| )");
  int count = 0;
  for (std::string row; std::getline(rows, row);) {
    if (row.starts_with('#')) continue;
    const std::vector<std::string> fields(
        std::sregex_token_iterator(row.begin(), row.end(), between, -1), {});
    ASSERT_EQ(fields.size(), 4U) << row;
    const fs::path file(fields[0]);
    const Copied copy(file.parent_path());
    copy.change(file.filename(), fields[1], fields[2]);
    EXPECT_NE(copy.error().find(fields[3]), std::string::npos) << row << "\n" << copy.error();
    ++count;
  }
  EXPECT_GT(count, 30);
}

TEST(PublishedModel, SettingsThatContradictItAreRefused) {
  const Copied copy("gpt2");
  for (const std::string set : {"model.width=64", "model.family=llama", "model.context=13"})
    expect_has(copy.error({set}), set.substr(0, set.find('=')));
  fs::remove(copy.path + "/model.safetensors");
  expect_has(copy.error(), "model.safetensors");
}

// A config is read in order to create a model: gigabytes, if one number of config.json is wrong.
TEST(PublishedModel, NumbersThatTheTensorsDoNotHaveAreRefusedWithTheConfig) {
  struct Change {
    std::string name, from, to, says;
  };
  for (const Change& change :
       {Change{"gpt2", "\"vocab_size\": 40", "\"vocab_size\": 1000000", "wte"},
        {"llama", "\"intermediate_size\": 32", "\"intermediate_size\": 1000000", "mlp"},
        {"bert-masked-lm", "\"intermediate_size\": 24", "\"intermediate_size\": 1000000", "dense"},
        {"llama", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 60000", "60000 layers"}}) {
    const Copied copy(change.name);
    copy.change("config.json", change.from, change.to);
    expect_has(input_error([&] { config_from(copy.path); }).what(), change.says);
    fs::remove(copy.path + "/model.safetensors");
    EXPECT_NO_THROW(config_from(copy.path)) << "a config.json alone can be planned";
  }
}

TEST(PublishedModel, DamagedHeadersAreRefused) {
  const Copied copy("gpt2");
  const std::string file = copy.path + "/model.safetensors", bytes = bytes_of_file(file);
  for (const std::string& damaged :
       {bytes.substr(0, 4), bytes.substr(0, 100), bytes.substr(0, bytes.size() - 1), bytes + "x",
        std::string(8, '\xff') + bytes.substr(8)}) {
    write_bytes(file, damaged);
    expect_has(copy.error(), "model.safetensors");
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
    for (const StoredTensor& tensor : tensors) {
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
  expect_has(copy.error(), "not in a file of this folder");
  map.erase("transformer.wte.weight");
  write_index();
  expect_has(copy.error(), "not in the index");
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

  constexpr std::uint64_t kMost = 2500;  // less than a token table
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
  EXPECT_TRUE(
      fs::exists(fmt::format("{}/model-00001-of-{:05}.safetensors", out, files.size() - 2)));
  EXPECT_TRUE(
      PublishedWeights(out, read_published_config(out), config_from(out)).missing().empty());

  // No file of an earlier export is left, whether it had one file or several.
  write(total);
  EXPECT_EQ(names_in(out), single);
  EXPECT_EQ(bytes_of_file(out + "/model.safetensors"), bytes_of_file(whole.path()));
  write(2 * kMost);
  const std::vector<std::string> fewer = names_in(out);
  EXPECT_LT(fewer.size(), files.size());
  EXPECT_FALSE(fs::exists(out + "/model.safetensors"));
  // A failed export keeps the previous one.
  const auto fail = [](const std::string&, std::span<float>) { throw_failure("full", "disk"); };
  EXPECT_THROW(write_published(out, config, StoredType::f32, fail, kMost), Error);
  EXPECT_EQ(names_in(out), fewer);
  EXPECT_TRUE(
      PublishedWeights(out, read_published_config(out), config_from(out)).missing().empty());
}

TEST(Safetensors, HalvesAndBrainFloatsAreReadExactlyAndMetadataMayBeNull) {
  const TemporaryDirectory root;
  const std::string path = root.path() + "/a.safetensors";
  const std::string header =
      R"({"__metadata__":null,"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"h":{"dtype":"F16","shape":[6],"data_offsets":[4,16]},"d":{"dtype":"F64","shape":[],"data_offsets":[16,24]}})";
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

/// CONCERTINA_MUTATIONS sets the number of mutations per file.
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
      copy.error();  // checks the type of the exception
    }
  }
}

}  // namespace
}  // namespace concertina
