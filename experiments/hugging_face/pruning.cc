#include "experiments/hugging_face/pruning.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/hugging_face/merged_weights.h"
#include "experiments/hugging_face/published_pieces.h"
#include "experiments/run/planning.h"

namespace concertina {
namespace {

/// Returns the largest of the `share` of values that are smallest; -1 if this is none of them.
float limit_of(std::vector<float>& magnitudes, double share) {
  const auto pruned = std::llround(share * static_cast<double>(magnitudes.size()));
  if (pruned == 0) return -1;
  const auto last = magnitudes.begin() + (pruned - 1);
  std::ranges::nth_element(magnitudes, last);
  return *last;
}

}  // namespace

PrunedWeights::PrunedWeights(CheckpointReader& reader, const RunConfig& config, double share,
                             bool global)
    : reader_(reader) {
  std::vector<float> magnitudes;
  const ModelSpec model = model_of(without_adapters(config))->spec();
  for (const UnitSpec& unit : model.units)
    for (const ParameterSpec& parameter : unit.parameters) {
      if (parameter.matrices.empty()) continue;
      const std::string name = unit.name + "/" + parameter.name;
      limits_[name] = -1;
      if (share == 0) continue;
      const std::size_t begin = global ? magnitudes.size() : 0;
      magnitudes.resize(begin + static_cast<std::size_t>(elements_of(parameter.shape)));
      const std::span<float> own = std::span(magnitudes).subspan(begin);
      read_merged(reader, name, own);
      for (float& weight : own) weight = std::abs(weight);
      if (!global) limits_[name] = limit_of(magnitudes, share);
    }
  if (!global || share == 0) return;
  const float limit = limit_of(magnitudes, share);
  for (auto& [name, own] : limits_) own = limit;
}

void PrunedWeights::read(const std::string& tensor, std::span<float> out) {
  read_merged(reader_, tensor, out);
  const auto limit = limits_.find(tensor);
  if (limit == limits_.end()) return;
  for (float& weight : out)
    if (std::abs(weight) <= limit->second) weight = 0;
  counts_.push_back({tensor, std::ranges::count(out, 0.0F), std::ssize(out)});
}

}  // namespace concertina
