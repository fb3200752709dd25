// Adapters: the model with adapters is the model whose weights contain them, and their gradients
// are the factors' parts of the whole weights' gradients.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/models/local_pipeline.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

constexpr float kScale = 1.5F;
constexpr int kAdaptedMicrobatches = 2;

ModelConfig config_of(const std::string& family, std::vector<std::string> targets) {
  ModelConfig config{.layers = 2, .width = 32, .heads = 4, .context = 8, .vocab = 37, .samples = 2};
  if (family == "bert") config.task = "classification";
  if (!targets.empty()) config.lora = {{.rank = 3, .scale = kScale}, std::move(targets)};
  return config;
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> gradients;  // of the tensors that train
};

using Weights = std::map<std::string, std::vector<float>>;

/// Trains on equal data, from `weights`, which initialize() provides if they are empty.
Trained train(const std::string& family, const ModelConfig& config, Weights& weights,
              const std::vector<int>& cuts = {0},
              LocalPipeline::Backward backward = LocalPipeline::Backward::joint) {
  const auto backend = make_cpu_backend(1);
  const auto model = make_model(family, config);
  LocalPipeline pipeline(*backend, *model, cuts);
  pipeline.initialize(5);
  Data data(3), samples(4);
  for (const Bucket& bucket : pipeline.buckets())
    for (const BucketTensor& tensor : bucket.tensors) {
      const View view = pipeline.weight(tensor.name);
      std::vector<float>& values = weights[tensor.name];
      if (values.empty() && tensor.name.ends_with(".lora_b"))
        values = data.normal(static_cast<std::int64_t>(tensor.count), 0.1F).values();
      else if (values.empty())
        values = to_floats(view);
      assign(view, values);
    }
  pipeline.refresh();
  GradientStore store(pipeline.buckets());
  Trained trained;
  for (int m = 0; m < kAdaptedMicrobatches; ++m) {
    std::vector<Buffer> fields;
    for (const Field& field : fields_of(model->spec()))
      fields.push_back(samples.integers(2 * field.elements(), field.name == "lengths" ? 8 : 0,
                                        field.name == "lengths"  ? 8
                                        : field.name == "tokens" ? 36
                                                                 : 1));
    trained.losses.push_back(pipeline.train(views_of(fields), 0.1F, m, store, backward));
  }
  for (std::size_t b = 0; b < pipeline.buckets().size(); ++b) {
    const std::vector<float> total = store.total(static_cast<int>(b));
    EXPECT_EQ(total.empty(), pipeline.buckets()[b].frozen) << pipeline.buckets()[b].name;
    if (total.empty()) continue;
    for (const BucketTensor& tensor : pipeline.buckets()[b].tensors) {
      const auto begin = total.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
      trained.gradients[tensor.name].assign(begin,
                                            begin + static_cast<std::ptrdiff_t>(tensor.count));
    }
  }
  return trained;
}

/// Returns scale x y for matrices x[rows,inner] and y[inner,columns], each of which may be stored
/// transposed.
std::vector<float> product(const std::vector<float>& x, bool x_turned, const std::vector<float>& y,
                           bool y_turned, std::size_t rows, std::size_t inner,
                           std::size_t columns) {
  std::vector<float> out(rows * columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < inner; ++k)
        sum += static_cast<double>(x[x_turned ? k * rows + r : r * inner + k]) *
               static_cast<double>(y[y_turned ? c * inner + k : k * columns + c]);
      out[r * columns + c] = static_cast<float>(kScale * sum);
    }
  return out;
}

struct Factors {
  std::string map;
  std::size_t in, rank, out;
};

std::vector<Factors> factors_of(const Weights& weights) {
  std::vector<Factors> all;
  for (const auto& [name, values] : weights)
    if (name.ends_with(".lora_a")) {
      const std::string map = name.substr(0, name.size() - 7);
      const std::size_t rank = 3;
      all.push_back({map, values.size() / rank, rank, weights.at(map + ".lora_b").size() / rank});
    }
  return all;
}

class AdapterTest : public testing::TestWithParam<std::string> {};

TEST_P(AdapterTest, IsAPartOfTheWholeWeight) {
  Weights weights;
  const Trained adapted =
      train(GetParam(), config_of(GetParam(), {"qkv", "proj", "up", "down"}), weights);
  Weights merged;
  for (const auto& [name, values] : weights)
    if (name.find(".lora_") == std::string::npos) merged[name] = values;
  const std::vector<Factors> all = factors_of(weights);
  EXPECT_EQ(all.size(), 8U);
  for (const auto& [map, in, rank, out] : all) {
    const std::vector<float> sum = product(weights.at(map + ".lora_a"), false,
                                           weights.at(map + ".lora_b"), false, in, rank, out);
    std::vector<float>& weight = merged.at(map + ".weight");
    std::ranges::transform(weight, sum, weight.begin(), std::plus{});
  }
  const Trained whole = train(GetParam(), config_of(GetParam(), {}), merged);
  EXPECT_LE(relative_error(adapted.losses, whole.losses), 1e-6);
  for (const auto& [map, in, rank, out] : all) {
    const std::vector<float>& dw = whole.gradients.at(map + ".weight");
    const std::vector<float> da =
        product(dw, false, weights.at(map + ".lora_b"), true, in, out, rank);
    const std::vector<float> db =
        product(weights.at(map + ".lora_a"), true, dw, false, rank, in, out);
    EXPECT_LE(relative_error(adapted.gradients.at(map + ".lora_a"), da), 1e-4) << map;
    EXPECT_LE(relative_error(adapted.gradients.at(map + ".lora_b"), db), 1e-4) << map;
  }
}

/// Only the adapters train and, in a model for classes, the map to them.
TEST_P(AdapterTest, LeavesTheRestFrozen) {
  Weights weights;
  for (const auto& [name, gradient] :
       train(GetParam(), config_of(GetParam(), {"qkv"}), weights).gradients)
    EXPECT_TRUE(name.find("/qkv.lora_") != std::string::npos ||
                name.find("/classes.") != std::string::npos)
        << name;
}

TEST_P(AdapterTest, KeepsItsBitsInAnyStagesAndOrder) {
  Weights weights;
  const ModelConfig config = config_of(GetParam(), {"qkv", "up", "down"});
  const Trained whole = train(GetParam(), config, weights);
  for (const std::vector<int>& cuts : {std::vector{0, 1}, {0, 2, 3}})
    for (const auto backward :
         {LocalPipeline::Backward::joint, LocalPipeline::Backward::separate}) {
      const Trained cut = train(GetParam(), config, weights, cuts, backward);
      EXPECT_EQ(cut.losses, whole.losses);
      EXPECT_TRUE(cut.gradients == whole.gradients);
    }
}

INSTANTIATE_TEST_SUITE_P(Families, AdapterTest, testing::Values("gpt", "llama", "neox", "bert"));

}  // namespace
}  // namespace concertina
