// Reads the output of the scripts in tests/golden: numbers in a .json file, tensors in a .bin file.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/models/local_pipeline.h"

namespace concertina {

/// Reads a file that has only numbers.
inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream file(std::string(CONCERTINA_GOLDEN) + "/" + name + ".json");
  return nlohmann::json::parse(file);
}

/// Returns the options of a registry entry.
inline OptionValues options_of(const nlohmann::json& object) {
  OptionValues options;
  for (const auto& [name, value] : object.items()) {
    OptionValue& option = options[name];
    if (value.is_string())
      option = value.get<std::string>();
    else if (value.is_boolean())
      option = value.get<bool>();
    else if (value.is_number_integer())
      option = value.get<std::int64_t>();
    else
      option = value.get<double>();
  }
  return options;
}

inline Buffer integers(const std::vector<std::int32_t>& values) {
  Buffer buffer(values.size(), DType::i32);
  std::copy(values.begin(), values.end(), buffer.view().i32());
  return buffer;
}

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name) : index_(golden_json(name)) {
    std::ifstream bin(std::string(CONCERTINA_GOLDEN) + "/" + name + ".bin", std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(bin), {});
  }

  template <class T = float>
  std::vector<T> tensor(const std::string& name) const {
    const auto& entry = index_.at("tensors").at(name);
    CONCERTINA_CHECK(entry.at("type") == (std::is_same_v<T, float> ? "f32" : "i32"), "{}", name);
    std::size_t count = 1;
    for (const std::size_t extent : entry.at("shape")) count *= extent;
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes_.data() + entry.at("offset").get<std::size_t>(),
                count * sizeof(T));
    return values;
  }
  double number(const char* key) const { return index_.at("config").at(key); }
  std::int64_t integer(const char* key) const { return index_.at("config").at(key); }
  const nlohmann::json& facts() const { return index_.at("config"); }
  ModelConfig config() const {
    return {.layers = integer("layers"),
            .width = integer("width"),
            .heads = integer("heads"),
            .context = integer("context"),
            .vocab = integer("vocab"),
            .samples = integer("samples")};
  }
  /// Creates the model of the family and task named in the file, by default a GPT. `targets`: the
  /// most targets of a sample; 0: every row may have one.
  std::unique_ptr<Model> model(std::int64_t targets = 0, double label_smoothing = 0) const {
    ModelConfig whole = config();
    whole.targets = targets;
    whole.label_smoothing = label_smoothing;
    if (!facts().contains("family")) return make_model("gpt", whole);
    whole.task = facts().at("task");
    whole.classes = integer("classes");
    whole.options = options_of(facts().at("options"));
    return make_model(facts().at("family").get<std::string>(), whole);
  }
  /// Returns the fields that a model reads.
  std::vector<Buffer> fields(const ModelSpec& spec) const {
    std::vector<Buffer> fields;
    for (const Field& field : fields_of(spec)) {
      const bool plain = index_.at("tensors").contains(field.name);
      const std::string name = plain ? field.name : "field " + field.name;
      if (field.type == DType::i32)
        fields.push_back(integers(tensor<std::int32_t>(name)));
      else
        fields.emplace_back(tensor(name));
    }
    return fields;
  }
  /// Loads every weight of the model, with zero padding.
  void load_weights(LocalPipeline& pipeline) const {
    pipeline.initialize(0);
    for (const Bucket& bucket : pipeline.buckets())
      for (const BucketTensor& tensor : bucket.tensors) {
        const auto values = this->tensor(tensor.name);
        ASSERT_EQ(values.size(), tensor.count) << tensor.name;
        std::copy(values.begin(), values.end(), pipeline.weight(tensor.name).f32());
      }
    pipeline.refresh();
  }

 private:
  nlohmann::json index_;
  std::vector<char> bytes_;
};

}  // namespace concertina
