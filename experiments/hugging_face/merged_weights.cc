#include "experiments/hugging_face/merged_weights.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

constexpr std::string_view kWeight = ".weight";

/// alpha / rank of the run that wrote the checkpoint.
float scale_of(const CheckpointReader& reader) {
  RunConfig config;
  for (const char* key : {"lora.alpha", "lora.rank"})
    if (const auto& stored = reader.manifest().metadata; stored.contains(key))
      set_key(key, stored[key].get<std::string>(), reader.directory(), config);
  return static_cast<float>(config.lora.alpha / std::max(config.lora.rank, 1));
}

}  // namespace

RunConfig without_adapters(RunConfig config) {
  config.lora = {};
  return config;
}

bool is_adapter(const std::string& tensor) {
  return tensor.ends_with(".lora_a") || tensor.ends_with(".lora_b");
}

void read_merged(CheckpointReader& reader, const std::string& tensor, std::span<float> out) {
  reader.read(tensor, "weight", 0, out);
  if (!tensor.ends_with(kWeight)) return;
  const std::string map = tensor.substr(0, tensor.size() - kWeight.size());
  if (!reader.contains(map + ".lora_a")) return;
  const std::vector<std::int64_t> shape = reader.shape(map + ".lora_a");
  const auto rows = static_cast<std::size_t>(shape[0]), rank = static_cast<std::size_t>(shape[1]);
  const std::size_t columns = out.size() / rows;
  std::vector<float> a(rows * rank), b(rank * columns);
  reader.read(map + ".lora_a", "weight", 0, a);
  reader.read(map + ".lora_b", "weight", 0, b);
  const float scale = scale_of(reader);
  std::vector<float> sum(columns);
  for (std::size_t i = 0; i < rows; ++i) {
    std::ranges::fill(sum, 0.0F);
    for (std::size_t k = 0; k < rank; ++k)
      for (std::size_t c = 0; c < columns; ++c) sum[c] += a[i * rank + k] * b[k * columns + c];
    for (std::size_t c = 0; c < columns; ++c) out[i * columns + c] += scale * sum[c];
  }
}

}  // namespace concertina
