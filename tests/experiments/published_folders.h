// Folders of models in the hub's format, from tests/golden/published, and configs for them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/run/planning.h"
#include "tests/models/local_pipeline.h"
#include "tests/temporary_directory.h"

namespace concertina {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

inline std::string folder_of(const std::string& name) {
  return CONCERTINA_SOURCE "/tests/golden/published/" + name;
}

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Types with RoBERTa's tensors, by the prefix of their class names.
inline const std::map<std::string, std::string>& aliases() {
  static const std::map<std::string, std::string> all{{"camembert", "Camembert"},
                                                      {"xlm-roberta", "XLMRoberta"}};
  return all;
}

/// A copy of a model of tests/golden/published, or of an alias of one.
struct PublishedCopy {
  explicit PublishedCopy(const std::string& name)
      : source(folder_of(aliases().contains(name) ? "roberta-masked-lm" : name)) {
    fs::copy(source, path, fs::copy_options::recursive);
    config = nlohmann::json::parse(bytes_of_file(source + "/config.json"));
    if (!aliases().contains(name)) return;
    config.update({{"model_type", name}, {"architectures", {aliases().at(name) + "ForMaskedLM"}}});
    write(config);
  }
  void write(const nlohmann::json& text) const { write_bytes(path + "/config.json", text.dump()); }
  void change(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = bytes_of_file(path + "/" + file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_bytes(path + "/" + file, text.replace(at, from.size(), to));
  }

  const TemporaryDirectory root;
  const std::string source, path = root.path() + "/model";
  nlohmann::json config;
};

inline RunConfig config_from(const std::string& folder, Settings sets = {}) {
  sets.insert(sets.end(), {"model.from=" + folder, "batch.global=3", "batch.microbatches=1"});
  RunConfig config;
  for (const std::string& assignment : sets) set_config(assignment, config);
  adopt_model_from(config);
  validate(config);
  return config;
}

/// Returns a field of the model from expected.json, where it has transformers' name.
inline Buffer field_buffer(const Field& field, const nlohmann::json& expected,
                           std::int64_t samples) {
  const std::string name = field.name == "tokens"  ? "input_ids"
                           : field.name == "types" ? "token_type_ids"
                           : field.name == "image" ? "pixel_values"
                                                   : field.name;
  const auto count = static_cast<std::size_t>(field.elements() * samples);
  if (field.name == "scores") return Buffer(count);  // not used here
  if (field.type == DType::f32) return Buffer(expected.at(name).get<std::vector<float>>());
  Buffer buffer(count, DType::i32);
  std::int32_t* const out = buffer.view().i32();
  std::fill_n(out, count, 0);  // targets are not used here
  if (field.name == "lengths") {
    const auto mask = expected.at("attention_mask").get<std::vector<std::int32_t>>();
    const std::size_t rows = mask.size() / count;
    for (std::size_t i = 0; i < mask.size(); ++i) out[i / rows] += mask[i];
  } else if (expected.contains(name)) {
    std::ranges::copy(expected.at(name).get<std::vector<std::int32_t>>(), out);
  }
  return buffer;
}

/// `read` writes a tensor of the model, like PublishedWeights::read().
template <class Read>
std::vector<float> logits_with(const RunConfig& config, const Read& read,
                               const nlohmann::json& expected) {
  const auto backend = make_cpu_backend(1);
  const std::unique_ptr<Model> model = model_of(config);
  LocalPipeline pipeline(*backend, *model);
  pipeline.initialize(0);
  for (const Bucket& bucket : pipeline.buckets())
    for (const BucketTensor& tensor : bucket.tensors)
      EXPECT_TRUE(read(tensor.name, {pipeline.weight(tensor.name).f32(), tensor.count}));
  pipeline.refresh();
  std::vector<Buffer> buffers;
  for (const Field& field : fields_of(model->spec()))
    buffers.push_back(field_buffer(field, expected, 3));
  std::vector<float> logits;
  pipeline.evaluate(views_of(buffers), logits);
  return logits;
}

inline std::vector<float> logits_of(const RunConfig& config, const PublishedWeights& weights,
                                    const nlohmann::json& expected) {
  return logits_with(
      config,
      [&](const std::string& name, std::span<float> out) { return weights.read(name, out); },
      expected);
}

}  // namespace concertina
